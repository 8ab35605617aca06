//! One line on its way, through as many tries as the layer gives it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use tower_service::Service;

use super::answered::Answered;
use super::answers::Answers;
use super::client::{Client, Left};
use super::input::Line;
use super::outage::Cause;
use super::outcome::{Failure, Outcome};
use super::shared::Shared;
use super::target::Base;
use tollgate::ErrorChain;
use tollgate::limiter::AcquireError;
use tollgate::middleware::{Http, Journey, RateLimitError, RetryFuture, RetryService};

/// The client behind the limits.
pub(super) type Limited = RetryService<Client, Http, Answers>;

type Calling = RetryFuture<Client, http::Request<Bytes>, Http, Answers>;

/// A request that was handed to the layer, in its place in the queue.
pub(super) struct Attempt {
    journey: Journey,
    left: Left,
    /// Large, and moved often while it waits: the tasks of all lines stay small.
    calling: Pin<Box<Calling>>,
}

impl Attempt {
    /// Takes the next place in the queue. The layer isn't built for a key, so it is always ready.
    pub(super) fn start(service: &mut Limited, base: &Base, line: &Line) -> Self {
        let (journey, left) = (Journey::new(), Left::of_line(line.number));
        let mut request = http::Request::new(line.body.clone());
        *request.method_mut() = http::Method::POST;
        // The whole of it: the path of the base may name an Azure deployment.
        *request.uri_mut() = base.join(&line.url_path).parse().unwrap_or_default();
        request.extensions_mut().insert(journey.clone());
        request.extensions_mut().insert(left.clone());
        Self { journey, left, calling: Box::pin(service.call(request)) }
    }

    /// What becomes of its line; `None` if the run was stopped before it was sent, or sent again.
    ///
    /// If the quota that it waits for is removed, it takes its place in the queue of what counts now.
    /// During an outage it waits for the end of that, or for its turn to probe, and has all its tries
    /// again; but a line whose probes fail too often may be at fault itself.
    pub(super) async fn finish(self, line: &Line, shared: &Shared) -> Option<Outcome> {
        let (mut attempt, mut probe, mut failed_probes) = (self, None, 0);
        loop {
            let (journey, left) = (attempt.journey.clone(), attempt.left.clone());
            match attempt.end(line, shared, probe.is_some()).await {
                End::Outcome(outcome) => {
                    let excused = left.failures().lock().excused();
                    let has_probed = probe.is_some() && excused == Some(Cause::Unclear);
                    failed_probes += u32::from(has_probed);
                    if excused.is_none() || failed_probes == PROBES {
                        shared.tally.lock().finished(&journey.facts());
                        return Some(outcome);
                    }
                }
                End::Stopped => return None,
                End::Again => {}
            }
            drop(probe);
            probe = tokio::select! {
                biased;
                () = shared.stop.halted() => return None,
                turn = shared.gate.turn() => turn,
            };
            let service = if probe.is_some() { &shared.once } else { &shared.service };
            attempt = Self::start(&mut service.clone(), &shared.base, line);
        }
    }

    async fn end(self, line: &Line, shared: &Shared, is_probe: bool) -> End {
        let Self { journey, left, mut calling } = self;
        let end = match unless(until(shared, is_probe), calling.as_mut(), &left).await {
            Ok(Ok(response)) => {
                let answered = Answered::receive(response, &journey, shared).await;
                End::Outcome(answered.judge(line, shared))
            }
            // By a change of the configuration.
            Ok(Err(RateLimitError::Limited(AcquireError::Removed { .. }))) => End::Again,
            Ok(Err(error)) => End::Outcome(failed(line, error)),
            Err(end) => end,
        };
        shared.tally.lock().sent(&journey.facts());
        end
    }
}

/// How an attempt ended.
enum End {
    Outcome(Outcome),
    /// By the end of the run.
    Stopped,
    /// It has to take a place in the queue again: its quota is gone, or the server has an outage.
    Again,
}

/// Ends when nothing more may be sent: at the end of the run, or by an outage.
async fn until(shared: &Shared, is_probe: bool) -> End {
    let held = async {
        match is_probe {
            true => shared.gate.probe_overdue().await,
            false => shared.gate.paused().await,
        }
    };
    tokio::select! {
        biased;
        () = shared.stop.halted() => End::Stopped,
        () = held => End::Again,
    }
}

/// A request that has not left when `until` ends does not leave.
async fn unless<F: Future>(
    until: impl Future<Output = End>,
    mut calling: Pin<&mut F>,
    left: &Left,
) -> Result<F::Output, End> {
    let (mut until, mut end) = (pin!(until), None);
    poll_fn(|cx| {
        if end.is_none()
            && let Poll::Ready(ended) = until.as_mut().poll(cx)
        {
            end = Some(ended);
        }
        if let Some(end) = end.take_if(|_| !left.is_set()) {
            return Poll::Ready(Err(end));
        }
        match calling.as_mut().poll(cx) {
            // It is back, and would be sent again.
            Poll::Pending => match end.take_if(|_| !left.is_set()) {
                Some(end) => Poll::Ready(Err(end)),
                None => Poll::Pending,
            },
            polled => polled.map(Ok),
        }
    })
    .await
}

/// A request without an answer.
fn failed(line: &Line, error: RateLimitError) -> Outcome {
    let failure = match error.into_inner::<reqwest::Error>() {
        Ok(error) => return broken(line, error),
        // It cost no request, and under other limits it may fit: the next run looks again.
        Err(RateLimitError::Limited(AcquireError::Refused(refused))) => {
            Failure::new(refused.code.as_str(), refused.to_string()).retryable()
        }
        Err(error) => Failure::new("not_sent", ErrorChain(&error).to_string()).retryable(),
    };
    Outcome::failed(&line.custom_id, None, failure)
}

fn broken(line: &Line, error: reqwest::Error) -> Outcome {
    let code = if error.is_timeout() { "timeout" } else { "connection" };
    // Without the URL: its query may hold a key.
    let failure = Failure::new(code, ErrorChain(&error.without_url()).to_string()).retryable();
    Outcome::failed(&line.custom_id, None, failure)
}

/// How many probes of one line may fail without an answer from anybody before the line fails.
const PROBES: u32 = 6;
