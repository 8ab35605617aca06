use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;

use super::super::exit::text;
use super::super::stdout::Stdout;
use super::super::{Exit, account_limits};
use super::log::LogWriter;
use super::signals::{Signal, Signals};
use super::{ServeArgs, log, open_files};
use paceline_config::{Loaded, ReloadOutcome};
use paceline_serve::{Serve, Server, Tokens};

/// Serves until a signal stops the server.
///
/// # Errors
/// Returns an error of the configuration or the address.
pub(crate) async fn serve(args: &ServeArgs, out: &mut Stdout<'_>) -> Result<Exit, String> {
    let mut signals = Signals::listen().map_err(text)?;
    let Some(loaded) = load(args, &mut signals).await? else { return Ok(Exit::Success) };
    let settings = Serve::of(&loaded.config).map_err(text)?;
    let log = log::start(settings.log).map_err(text)?;
    open_files::raise_limit(&loaded, settings);
    let limiter = paceline_serve::limiter(&loaded.config).map_err(text)?;
    account_limits::follow(&loaded.config, &limiter)?;
    let tokens = Tokens::from_environment().map_err(text)?;
    let server = Server::bind(loaded.config.clone(), limiter, tokens).await.map_err(text)?;
    server.follow(&loaded).map_err(text)?;
    out.line(&format_args!("listening on http://{}", server.addr()))?;
    if loaded.config.quotas.is_empty() && !loaded.config.providers.is_empty() {
        tracing::info!("{BUILT_IN}");
    }
    serve_until_stopped(&server, &mut signals).await;
    Ok(shut_down(server, &mut signals, &log).await)
}

/// Loads the configuration; `None` if a signal stops the server while it waits for a file.
async fn load(args: &ServeArgs, signals: &mut Signals) -> Result<Option<Loaded>, String> {
    let args = args.clone();
    let loading = tokio::task::spawn_blocking(move || args.load());
    tokio::select! {
        loaded = loading => loaded.map_err(text)?.map(Some),
        () = signals.stop() => Ok(None),
    }
}

async fn serve_until_stopped(server: &Server, signals: &mut Signals) {
    // A reload may wait for a file for any time, and must not hold up the signals.
    let mut reloads = FuturesUnordered::new();
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::Stop => return,
                Signal::Reload => reloads.push(server.reload()),
                Signal::Ignored(name) => {
                    tracing::info!("{name}: ignored; SIGTERM or SIGINT ends the server");
                }
            },
            Some(reload) = reloads.next() => log_reload(&reload),
        }
    }
}

fn log_reload(reload: &ReloadOutcome) {
    match reload {
        ReloadOutcome::NoFile => {
            tracing::info!("SIGHUP: no configuration file in use, nothing to reload")
        }
        ReloadOutcome::Unchanged => tracing::info!("SIGHUP: the configuration has not changed"),
        ReloadOutcome::Changed(status) => tracing::info!(
            changed = %status.changed.join(", "),
            needs_restart = %status.needs_restart.join(", "),
            "SIGHUP: configuration reloaded"
        ),
        ReloadOutcome::Refused(error) => {
            tracing::warn!(%error, "SIGHUP: invalid configuration, the previous one stays in use");
        }
    }
}

/// Shuts down. A second signal cuts off responses in progress; a third returns immediately.
async fn shut_down(server: Server, signals: &mut Signals, log: &LogWriter) -> Exit {
    let (cut_off, cut_off_requested) = oneshot::channel();
    let mut ending = std::pin::pin!(server.shutdown_until(async {
        let _ = cut_off_requested.await;
    }));
    let (ended, exit) = tokio::select! {
        ended = &mut ending => (ended, Exit::Success),
        () = signals.stop() => {
            let _ = cut_off.send(());
            tokio::select! {
                ended = ending => (ended, Exit::Interrupted),
                () = signals.stop() => return Exit::Interrupted,
            }
        }
    };
    match ended {
        Ok(()) => exit,
        Err(error) => {
            log.notify(&error.to_string());
            Exit::Unsaved
        }
    }
}

/// Said once, since the built-in quotas may be far from those of the account.
const BUILT_IN: &str = "no quotas are configured: the built-in quotas of the lowest paid tier apply until \
                        response headers or refusals show other limits; `paceline config providers` \
                        lists them";
