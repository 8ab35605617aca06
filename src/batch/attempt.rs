//! One line on its way: sent, and sent again where that may help.

use std::time::Duration;

use bytes::Bytes;
use tower_service::Service;

use super::answered::{Answered, Tried};
use super::client::{Client, Left};
use super::input::Line;
use super::outcome::{Failure, Outcome};
use super::shared::Shared;
use crate::limiter::AcquireError;
use crate::middleware::{Http, Journey, RateLimitError, RateLimitService, ResponseFuture};

/// The client behind the limits.
pub(super) type Limited = RateLimitService<Client, Http, Http>;

type Calling = ResponseFuture<Client, http::Request<Bytes>, Http, Http>;

/// A request that was handed to the layer, in its place in the queue.
pub(super) struct Attempt {
    journey: Journey,
    left: Left,
    calling: Calling,
}

impl Attempt {
    /// Takes the next place in the queue. The layer isn't built for a key, so it is always ready.
    pub(super) fn start(service: &mut Limited, line: &Line) -> Self {
        let (journey, left) = (Journey::new(), Left::default());
        let mut request = http::Request::new(line.body.clone());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = line.url_path.parse().unwrap_or_default();
        request.extensions_mut().insert(journey.clone());
        request.extensions_mut().insert(left.clone());
        Self { journey, left, calling: service.call(request) }
    }

    /// Waits for its answer; `None` if the run was stopped before it was sent.
    async fn finish(self, line: &Line, shared: &Shared) -> Option<Tried> {
        let Self { journey, left, mut calling } = self;
        let result = tokio::select! {
            // Asked first: what has not left when the run is stopped does not leave.
            biased;
            () = shared.stop.halted() => {
                left.is_set().then_some(())?;
                calling.await
            }
            result = &mut calling => result,
        };
        let (tried, status) = match result {
            Ok(response) => {
                let status = response.status();
                let tried = match Answered::receive(response, &journey, shared).await {
                    Ok(answered) => answered.judge(line, shared),
                    Err(error) => broken(line, error),
                };
                (tried, Some(status))
            }
            Err(error) => (failed(line, error), None),
        };
        if left.is_set() {
            shared.tally.lock().sent(&journey.facts(), status);
        }
        Some(tried)
    }
}

/// Sends a line until it succeeds, fails for good, or was tried often enough. `None` if the run was
/// stopped before that.
pub(super) async fn run(first: Attempt, line: &Line, shared: &Shared) -> Option<Outcome> {
    let (mut attempt, mut again) = (first, 0);
    loop {
        let (outcome, delay) = match attempt.finish(line, shared).await? {
            Tried::Done(outcome) => return Some(outcome),
            Tried::Again(outcome, _) if again == shared.retries => return Some(outcome),
            Tried::Again(outcome, delay) => (outcome, delay),
        };
        drop(outcome);
        tokio::select! {
            biased;
            () = shared.stop.halted() => return None,
            () = tokio::time::sleep(delay.unwrap_or_else(|| backoff(again))) => {}
        }
        again += 1;
        shared.tally.lock().retried();
        attempt = Attempt::start(&mut shared.service.clone(), line);
    }
}

/// A request without an answer.
fn failed(line: &Line, error: RateLimitError) -> Tried {
    let failure = match error.into_inner::<reqwest::Error>() {
        Ok(error) => return broken(line, error),
        // It cost no request, and under other limits it may fit: the next run looks again.
        Err(RateLimitError::Limited(AcquireError::Refused(refused))) => {
            Failure::new(refused.code.as_str(), refused.to_string()).retryable()
        }
        Err(error) => Failure::new("not_sent", chain(&error)).retryable(),
    };
    Tried::Done(Outcome::failed(&line.custom_id, None, failure))
}

fn broken(line: &Line, error: reqwest::Error) -> Tried {
    let code = if error.is_timeout() { "timeout" } else { "connection" };
    // Without the URL: its query may hold a key.
    let failure = Failure::new(code, chain(&error.without_url())).retryable();
    Tried::Again(Outcome::failed(&line.custom_id, None, failure), None)
}

/// An error and its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Half a second, twice as long each time, at most 30 s.
fn backoff(again: u32) -> Duration {
    Duration::from_millis(500).saturating_mul(1 << again.min(6)).min(Duration::from_secs(30))
}
