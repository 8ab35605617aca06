//! One line on its way: sent, sent again where that may help, and what became of it.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use tower_service::Service;

use super::input::Line;
use super::job::Shared;
use super::outcome::{Answer, Failure, Outcome};
use super::stop::Halt;
use crate::limiter::AcquireError;
use crate::middleware::{Http, Journey, RateLimitError, RateLimitService, ResponseFuture};
use crate::provider::{ApiError, Class};

use super::client::Client;

/// The client behind the limits.
pub(super) type Limited = RateLimitService<Client, Http, Http>;

type Calling = ResponseFuture<Client, http::Request<Bytes>, Http, Http>;

/// A request that was handed to the layer, in its place in the queue.
pub(super) struct Attempt {
    journey: Journey,
    calling: Calling,
}

/// What one try came to.
enum Tried {
    Done(Outcome),
    /// May succeed if it is sent again; this is what it is if it isn't.
    Again(Outcome, Option<Duration>),
}

impl Attempt {
    /// Takes the next place in the queue. The layer isn't built for a key, so it is always ready.
    pub(super) fn start(service: &mut Limited, line: &Line) -> Self {
        let journey = Journey::new();
        let mut request = http::Request::new(line.body.clone());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = line.url_path.parse().unwrap_or_default();
        request.extensions_mut().insert(journey.clone());
        Self { journey, calling: service.call(request) }
    }

    /// Waits for its answer; `None` if the run was stopped before it was sent.
    async fn finish(self, line: &Line, shared: &Shared) -> Option<Tried> {
        let Self { journey, mut calling } = self;
        let result = tokio::select! {
            result = &mut calling => result,
            () = shared.stop.halted() => {
                journey.facts().granted_at?;
                calling.await
            }
        };
        let tried = match result {
            Ok(response) => received(response, line, shared, &journey).await,
            Err(error) => Some(failed(line, &error)),
        };
        shared.tally.lock().sent(&journey.facts());
        tried
    }
}

/// Sends a line until it succeeds, fails for good, or was tried often enough. `None` if the run was
/// stopped before that.
pub(super) async fn run(first: Attempt, line: &Line, shared: &Shared) -> Option<Outcome> {
    let mut attempt = first;
    for again in 0.. {
        let (outcome, delay) = match attempt.finish(line, shared).await? {
            Tried::Done(outcome) => return Some(outcome),
            Tried::Again(outcome, delay) => (outcome, delay),
        };
        if again >= shared.retries {
            return Some(outcome);
        }
        tokio::select! {
            () = tokio::time::sleep(delay.unwrap_or_else(|| backoff(again))) => {}
            () = shared.stop.halted() => return None,
        }
        shared.tally.lock().retried();
        attempt = Attempt::start(&mut shared.service.clone(), line);
    }
    unreachable!("a loop without an end")
}

async fn received(
    response: http::Response<impl http_body::Body<Data = Bytes, Error = reqwest::Error>>,
    line: &Line,
    shared: &Shared,
    journey: &Journey,
) -> Option<Tried> {
    let (parts, body) = response.into_parts();
    if parts.status == http::StatusCode::TOO_MANY_REQUESTS {
        shared.tally.lock().rate_limited();
    }
    let body = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => return Some(broken(line, &error)),
    };
    let mut answer = Answer::new(parts.status.as_u16(), body.clone());
    if let Some(id) = parts.headers.get("x-request-id").and_then(|id| id.to_str().ok()) {
        answer = answer.with_request_id(id);
    }
    let in_band = journey.facts().error;
    let (class, error) = match &in_band {
        Some(error) => (shared.profile.classify_in_band(error), error.clone()),
        None => {
            let class = shared.profile.classify(parts.status, &parts.headers, &body);
            (class, ApiError::read(&body).unwrap_or_default())
        }
    };
    if class == Class::Ok {
        return Some(Tried::Done(Outcome::succeeded(&line.custom_id, answer)));
    }
    let failure = match in_band {
        Some(_) if class == Class::Terminal => Failure::new("in_band_error", error.message()),
        Some(_) => Failure::new("in_band_error", error.message()).retryable(),
        None => Failure::http(parts.status.as_u16(), told(&error, parts.status)),
    };
    let outcome = Outcome::failed(&line.custom_id, Some(answer), failure);
    if shared.profile.is_account_wide(parts.status, &error) {
        let told = told(&error, parts.status);
        shared.stop.halt(Halt::Failed(format!("the provider refuses the account: {told}")));
    }
    Some(match class {
        // The limiter was told of the delay, and holds the whole queue for it.
        Class::Transient if is_refusal(parts.status) => Tried::Again(outcome, Some(Duration::ZERO)),
        Class::Transient => Tried::Again(outcome, None),
        _ => Tried::Done(outcome),
    })
}

/// A request without an answer.
fn failed(line: &Line, error: &RateLimitError<reqwest::Error>) -> Tried {
    match error {
        RateLimitError::Limited(AcquireError::Refused(refused)) => {
            let failure = Failure::new(refused.code.as_str(), refused.to_string());
            Tried::Done(Outcome::failed(&line.custom_id, None, failure))
        }
        RateLimitError::Inner(error) => broken(line, error),
        error => {
            let failure = Failure::new("not_sent", chain(error)).retryable();
            Tried::Done(Outcome::failed(&line.custom_id, None, failure))
        }
    }
}

fn broken(line: &Line, error: &reqwest::Error) -> Tried {
    let code = if error.is_timeout() { "timeout" } else { "connection" };
    let failure = Failure::new(code, chain(error)).retryable();
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

fn told(error: &ApiError, status: http::StatusCode) -> String {
    match error.message() {
        "" => format!("HTTP {status}"),
        message => message.to_owned(),
    }
}

fn is_refusal(status: http::StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 503 | 529)
}

/// Half a second, twice as long each time, at most 30 s.
fn backoff(again: u32) -> Duration {
    Duration::from_millis(500).saturating_mul(1 << again.min(6)).min(Duration::from_secs(30))
}
