//! Pauses requests during an outage of the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, watch};

use super::outage::{Cause, LineFailures, Outage};
use super::stop::{Halt, Stop};
use super::target::Base;
use tollgate::Timestamp;
use tollgate::causes;
use tollgate::limiter::Limiter;
use tollgate::provider::InvalidAnswer;

/// Pauses requests during an outage, except for one probe at a time. Clones share their state.
#[derive(Debug, Clone)]
pub(super) struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    outage: watch::Sender<Outage>,
    /// Held by the line that probes the server. Lines acquire it in the order in which they wait.
    probe_lock: Arc<tokio::sync::Mutex<()>>,
    /// Used as a clock.
    limiter: Limiter,
    base: Base,
}

/// The permission to send one request during an outage.
#[derive(Debug)]
pub(super) struct Probe {
    _lock: OwnedMutexGuard<()>,
}

impl Gate {
    pub(super) fn new(limiter: Limiter, base: Base) -> Self {
        let (outage, probe_lock) = (watch::Sender::default(), Arc::default());
        Self(Arc::new(Inner { outage, probe_lock, limiter, base }))
    }

    /// Returns the time of the limiter's clock.
    pub(super) fn now(&self) -> Timestamp {
        self.0.limiter.now()
    }

    /// Records that a request is sent.
    pub(super) fn sent(&self, failures: &Mutex<LineFailures>) {
        self.0.outage.borrow().sent(&mut failures.lock());
    }

    /// Records the result of a request: its whole response, or an error.
    pub(super) fn received(
        &self,
        failures: &Mutex<LineFailures>,
        result: Result<&http::Response<Bytes>, &reqwest::Error>,
    ) {
        let (now, mut failures) = (self.0.limiter.now(), failures.lock());
        self.0.outage.send_if_modified(|outage| match cause(result) {
            None => outage.answered(&failures, now),
            Some(cause) => outage.failed(&mut failures, cause, || self.message(result), now),
        });
    }

    /// Waits until an outage begins; returns immediately during one.
    pub(super) async fn paused(&self) {
        self.wait(Outage::is_paused).await;
    }

    /// Waits for the end of the outage (`None`), or for the permission to probe the server.
    pub(super) async fn wait_turn(&self) -> Option<Probe> {
        tokio::select! {
            biased;
            () = self.wait(|outage| !outage.is_paused()) => None,
            probe = self.probe() => Some(probe),
        }
    }

    async fn probe(&self) -> Probe {
        let probe_lock = Arc::clone(&self.0.probe_lock).lock_owned().await;
        let at = self.0.outage.borrow().next_probe();
        self.0.limiter.sleep_until(at).await;
        Probe { _lock: probe_lock }
    }

    async fn wait(&self, condition: impl Fn(&Outage) -> bool) {
        let mut outage = self.0.outage.subscribe();
        // The sender is in `self`, so this can't fail.
        drop(outage.wait_for(condition).await);
    }

    /// Waits for the longest time that a probe may be queued for its limits. After that, a request
    /// for another model can probe the server.
    pub(super) async fn probe_overdue(&self) {
        self.0.limiter.sleep_until(self.0.limiter.now() + LONGEST_PROBE_WAIT).await;
    }

    /// Stops the run if the outage has lasted for at least `longest`.
    pub(super) fn give_up(&self, longest: Duration, stop: &Stop) {
        if let Some(why) = self.0.outage.borrow().give_up(longest, self.0.limiter.now()) {
            stop.halt(Halt::Failed(why));
        }
    }

    /// Returns the pending notices.
    pub(super) fn take_notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        self.0.outage.send_if_modified(|outage| {
            notices = outage.take_notices();
            false
        });
        notices
    }

    fn message(&self, result: Result<&http::Response<Bytes>, &reqwest::Error>) -> String {
        match result {
            Ok(response) => match invalid(response) {
                Some(invalid) => format!("HTTP {}, but {invalid}", response.status().as_u16()),
                None => format!("HTTP {}", response.status()),
            },
            Err(error) if error.is_connect() => {
                format!("{}: cannot connect: {}", self.0.base, root_cause(error))
            }
            Err(error) => root_cause(error),
        }
    }
}

/// Classifies a result; `None` for a valid response.
fn cause(result: Result<&http::Response<Bytes>, &reqwest::Error>) -> Option<Cause> {
    match result.map(|response| response.status().as_u16()) {
        Err(error) if error.is_connect() => Some(Cause::Server),
        Err(_) => Some(Cause::Unclear),
        Ok(408 | 409 | 425 | 429) => Some(Cause::Busy),
        Ok(503 | 529) => Some(Cause::Server),
        Ok(500..) => Some(Cause::Unclear),
        // Neither a failure nor the end of an outage.
        Ok(200) => result.ok().and_then(invalid).map(|_| Cause::Busy),
        Ok(_) => None,
    }
}

/// Returns the reason why a 200 response is invalid; `None` if it is valid.
fn invalid(response: &http::Response<Bytes>) -> Option<InvalidAnswer> {
    let checked = || InvalidAnswer::check(response.headers(), response.body());
    let invalid = if response.status() == StatusCode::OK { checked().err() } else { None };
    invalid.filter(|invalid| *invalid != InvalidAnswer::Error)
}

/// Returns the text of the innermost cause. Unlike the error itself, it contains no URL, whose query
/// may hold an API key.
fn root_cause(error: &reqwest::Error) -> String {
    match causes(error).skip(1).last() {
        Some(cause) => cause.to_string(),
        None => "the connection failed".to_owned(),
    }
}

const LONGEST_PROBE_WAIT: Duration = Duration::from_secs(30);
