//! The attempts to send one line.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use tower_service::Service;

use super::client::{Client, InFlight};
use super::input::InputLine;
use super::job_context::JobContext;
use super::outage::Cause;
use super::outcome::{Failure, Outcome};
use super::received_response::{ReceivedResponse, account_rejected};
use super::response_policy::ResponsePolicy;
use super::target::Base;
use tollgate::ErrorChain;
use tollgate::limiter::{AcquireError, Refused};
use tollgate::middleware::{Http, Journey, RateLimitError, RetryFuture, RetryService};

/// The client with rate limits and retries.
pub(super) type Limited = RetryService<Client, Http, ResponsePolicy>;

type CallFuture = RetryFuture<Client, http::Request<Bytes>, Http, ResponsePolicy>;

/// A request that was passed to the layer and is in its queue.
pub(super) struct Attempt {
    journey: Journey,
    in_flight: InFlight,
    /// Boxed, since it is large and moved often while it waits.
    call: Pin<Box<CallFuture>>,
}

impl Attempt {
    /// Queues the request. The layer has no key of its own, so it is always ready.
    pub(super) fn start(service: &mut Limited, base: &Base, line: &InputLine) -> Self {
        let (journey, in_flight) = (Journey::new(), InFlight::of_line(line.number));
        let mut request = http::Request::new(line.body.clone());
        *request.method_mut() = http::Method::POST;
        // The whole URL, since the path of the base may name an Azure deployment.
        *request.uri_mut() = base.join(&line.url_path).parse().unwrap_or_default();
        request.extensions_mut().insert(journey.clone());
        request.extensions_mut().insert(in_flight.clone());
        Self { journey, in_flight, call: Box::pin(service.call(request)) }
    }

    /// Waits for the outcome of the line; `None` if the run was stopped before the request was sent
    /// or retried.
    ///
    /// If the quota is removed while it waits, the request is queued again under the current
    /// quotas. During an outage it waits for the end of the outage, or for its turn to probe the
    /// server, and starts over with all its retries; a line whose probes fail too often counts as
    /// failed itself.
    pub(super) async fn finish(self, line: &InputLine, shared: &JobContext) -> Option<Outcome> {
        let (mut attempt, mut probe, mut failed_probes) = (self, None, 0);
        loop {
            let (journey, in_flight) = (attempt.journey.clone(), attempt.in_flight.clone());
            match attempt.end(line, shared, probe.is_some()).await {
                End::Outcome(outcome) => {
                    let excused = in_flight.failures().lock().excused();
                    let has_probed = probe.is_some() && excused == Some(Cause::Unclear);
                    failed_probes += u32::from(has_probed);
                    if excused.is_none() || failed_probes == MAX_FAILED_PROBES {
                        shared.stats.lock().finished(&journey.facts());
                        return Some(outcome);
                    }
                }
                End::Stopped => return None,
                End::Requeue => {}
            }
            drop(probe);
            probe = tokio::select! {
                biased;
                () = shared.stop.halted() => return None,
                probe = shared.gate.wait_turn() => probe,
            };
            let service = if probe.is_some() { &shared.once } else { &shared.service };
            attempt = Self::start(&mut service.clone(), &shared.base, line);
        }
    }

    async fn end(self, line: &InputLine, shared: &JobContext, is_probe: bool) -> End {
        let Self { journey, in_flight, mut call } = self;
        let end = match run_unless_cancelled(cancelled(shared, is_probe), call.as_mut(), &in_flight)
            .await
        {
            Ok(Ok(response)) => {
                End::Outcome(match ReceivedResponse::receive(response, &journey, shared).await {
                    Ok(response) => response.judge(line, shared),
                    Err(error) => connection_failed(line, error),
                })
            }
            // The configuration has changed.
            Ok(Err(RateLimitError::Limited(AcquireError::Removed { .. }))) => End::Requeue,
            Ok(Err(error)) => match error.refused().and_then(Refused::refusal) {
                Some(refusal) => {
                    shared.stop.halt(account_rejected(refusal.status, &refusal.text));
                    End::Stopped
                }
                None => End::Outcome(failed_without_response(line, error)),
            },
            Err(end) => end,
        };
        shared.stats.lock().sent(&journey.facts());
        end
    }
}

/// The end of an attempt.
enum End {
    Outcome(Outcome),
    /// The run was stopped.
    Stopped,
    /// It must be queued again: its quota was removed, or the server has an outage.
    Requeue,
}

/// Waits until no more requests may be sent: the run is stopped, or an outage begins.
async fn cancelled(shared: &JobContext, is_probe: bool) -> End {
    let outage = async {
        match is_probe {
            true => shared.gate.probe_overdue().await,
            false => shared.gate.paused().await,
        }
    };
    tokio::select! {
        biased;
        () = shared.stop.halted() => End::Stopped,
        () = outage => End::Requeue,
    }
}

/// Runs a call until it completes. If `cancelled` completes while the request is not in flight, the
/// call is abandoned.
async fn run_unless_cancelled<F: Future>(
    cancelled: impl Future<Output = End>,
    mut call: Pin<&mut F>,
    in_flight: &InFlight,
) -> Result<F::Output, End> {
    let (mut cancelled, mut end) = (pin!(cancelled), None);
    poll_fn(|cx| {
        if end.is_none()
            && let Poll::Ready(ended) = cancelled.as_mut().poll(cx)
        {
            end = Some(ended);
        }
        if let Some(end) = end.take_if(|_| !in_flight.is_set()) {
            return Poll::Ready(Err(end));
        }
        match call.as_mut().poll(cx) {
            // The attempt has failed, and would be retried.
            Poll::Pending => match end.take_if(|_| !in_flight.is_set()) {
                Some(end) => Poll::Ready(Err(end)),
                None => Poll::Pending,
            },
            polled => polled.map(Ok),
        }
    })
    .await
}

/// Returns the outcome of a request without a response.
fn failed_without_response(line: &InputLine, error: RateLimitError) -> Outcome {
    let failure = match error.into_inner::<reqwest::Error>() {
        Ok(error) => return connection_failed(line, error),
        // The request was not sent and may fit other limits, so the next run retries it.
        Err(RateLimitError::Limited(AcquireError::Refused(refused))) => {
            Failure::new(refused.code.as_str(), refused.to_string()).retryable()
        }
        Err(error) => Failure::new("not_sent", ErrorChain(&error).to_string()).retryable(),
    };
    Outcome::failed(&line.custom_id, None, failure)
}

fn connection_failed(line: &InputLine, error: reqwest::Error) -> Outcome {
    let code = if error.is_timeout() { "timeout" } else { "connection" };
    // Without the URL, whose query may hold an API key.
    let failure = Failure::new(code, ErrorChain(&error.without_url()).to_string()).retryable();
    Outcome::failed(&line.custom_id, None, failure)
}

/// The number of failed probes after which a line fails.
const MAX_FAILED_PROBES: u32 = 6;
