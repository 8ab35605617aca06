use std::io;

/// A signal to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM, or SIGINT (Ctrl-C).
    Stop,
    /// SIGHUP.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has this signal"))]
    Reload,
    /// A signal whose default action ends the process.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has this signal"))]
    Ignored(&'static str),
}

/// Signals of this process. Their default actions are disabled.
pub(super) struct Signals {
    #[cfg(unix)]
    listened: Vec<(Signal, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl Signals {
    /// Starts listening.
    ///
    /// # Errors
    /// Returns an error if a signal handler can't be installed.
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            (Signal::Stop, SignalKind::terminate()),
            (Signal::Stop, SignalKind::interrupt()),
            (Signal::Reload, SignalKind::hangup()),
            (Signal::Ignored("SIGQUIT"), SignalKind::quit()),
            (Signal::Ignored("SIGUSR1"), SignalKind::user_defined1()),
            (Signal::Ignored("SIGUSR2"), SignalKind::user_defined2()),
            (Signal::Ignored("SIGALRM"), SignalKind::alarm()),
        ];
        // With SIGXFSZ ignored, a write beyond the file size limit fails instead of ending the
        // server.
        #[cfg(target_os = "linux")]
        let kinds = kinds.into_iter().chain([
            (Signal::Ignored("SIGXFSZ"), SignalKind::from_raw(25)),
            (Signal::Ignored("SIGVTALRM"), SignalKind::from_raw(26)),
            (Signal::Ignored("SIGPROF"), SignalKind::from_raw(27)),
            (Signal::Ignored("SIGIO"), SignalKind::from_raw(29)),
            (Signal::Ignored("SIGPWR"), SignalKind::from_raw(30)),
        ]);
        let listened = kinds.into_iter().map(|(meaning, kind)| Ok((meaning, signal(kind)?)));
        Ok(Self { listened: listened.collect::<io::Result<_>>()? })
    }

    /// Waits for the next signal. Of several pending signals, one that stops the server comes first.
    pub(super) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|cx| {
            let mut signals = self.listened.iter_mut();
            let next = signals
                .find_map(|(signal, source)| source.poll_recv(cx).is_ready().then_some(*signal));
            next.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        })
        .await
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Starts listening.
    ///
    /// # Errors
    /// Returns an error if a signal handler can't be installed.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Signal {
        // Without a handler, Ctrl-C ends the process.
        let _ = tokio::signal::ctrl_c().await;
        Signal::Stop
    }
}

impl Signals {
    /// Waits for the next signal that stops the server.
    pub(super) async fn stop(&mut self) {
        while self.next().await != Signal::Stop {}
    }
}
