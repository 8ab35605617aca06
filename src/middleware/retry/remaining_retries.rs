use std::time::Duration;

use tower_service::Service;
use tracing::Span;

use super::backoff::backoff;
use super::judge::{Judge, Judged, Verdict};
use super::replay::Replay;
use super::stage::{NextStep, Stage};
use crate::Timestamp;
use crate::middleware::error::Failure;
use crate::middleware::future::GuardedResponse;
use crate::middleware::{Classify, Journey, RateLimitService};
use paceline_limiter::seam;

/// The remaining retries of a request.
pub(super) struct RemainingRetries<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    service: RateLimitService<S, C, O>,
    /// The copy for the next attempt; `None` after the last one.
    request: Option<Request>,
    /// The number of the request, the same for all its attempts.
    number: u64,
    left: u32,
    /// The number of retries sent so far.
    retries: u32,
    /// `true` if an attempt has failed, other than by a refusal for a limit.
    has_failed: bool,
    /// The time at which the provider said that the request fits, and the delay in which it said so.
    promised: Option<(Timestamp, Duration)>,
    /// The deadline of all attempts.
    deadline: Option<Timestamp>,
    journey: Option<Journey>,
    /// The current span at the time of the call.
    caller_span: Span,
    /// The result of the last attempt, returned if the limiter refuses the next one.
    last: Option<Result<O::Observed, S::Error>>,
}

impl<S, Request, C, O> RemainingRetries<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    pub(super) fn new(
        service: RateLimitService<S, C, O>,
        request: Request,
        number: u64,
        retries: u32,
        deadline: Option<Timestamp>,
        journey: Option<Journey>,
    ) -> Self {
        Self {
            service,
            request: Some(request),
            number,
            left: retries,
            retries: 0,
            has_failed: false,
            promised: None,
            deadline,
            journey,
            caller_span: Span::current(),
            last: None,
        }
    }
}

impl<S, Request, C, O> RemainingRetries<S, Request, C, O>
where
    S: Service<Request> + Clone,
    S::Error: 'static,
    C: Classify<Request>,
    O: Judge<S::Response>,
    Request: Replay,
{
    /// Handles the result of an attempt: a response, an error, or a refusal by the limiter.
    pub(super) fn on_result(
        &mut self,
        result: GuardedResponse<S, Request>,
    ) -> NextStep<S, Request, C, O> {
        let judge = self.service.judge();
        match result {
            Ok((response, guard)) if self.request.is_some() => {
                self.last = None;
                match judge.judge(response, guard, self.deadline) {
                    Judged::Judging(judging) => NextStep::Stage(Stage::Judging { judging }),
                    Judged::Passed(response) => NextStep::Finished(Ok(response)),
                }
            }
            Ok((response, guard)) => NextStep::Finished(Ok(judge.observe(response, guard))),
            Err(Failure::Inner(error)) if self.request.is_some() && judge.is_retryable(&error) => {
                self.finish_attempt(Err(error), Verdict::Retry(None))
            }
            Err(Failure::Limited(error)) if self.last.is_some() => {
                drop(error);
                if let Some(journey) = &self.journey {
                    journey.discard_attempt();
                }
                self.give_up()
            }
            Err(failure) => NextStep::Finished(Err(failure)),
        }
    }

    /// Stores the result of a retryable attempt and starts the next one, unless the deadline comes first.
    pub(super) fn finish_attempt(
        &mut self,
        result: Result<O::Observed, S::Error>,
        verdict: Verdict,
    ) -> NextStep<S, Request, C, O> {
        self.has_failed |= matches!(verdict, Verdict::Retry(_));
        let stage = match verdict {
            Verdict::Final => None,
            Verdict::Retry(delay) => self.pause(delay),
            Verdict::Requeue(delay) => self.requeue(delay),
        };
        let Some(stage) = stage else { return finished(result) };
        let last = self.last.insert(result);
        if let Ok(response) = last {
            self.service.judge().before_retry(response);
        }
        NextStep::Stage(stage)
    }

    /// Queues the next attempt in front while the key is held back. Otherwise the refusal says nothing about others, and
    /// the request waits alone first.
    fn requeue(&mut self, delay: Option<Duration>) -> Option<Stage<S, Request, C, O>> {
        let now = self.service.limiter().now();
        self.promise(delay, now);
        let classified = self.service.classify(self.request.as_ref()?).0;
        match self.service.waits_alone(&classified, self.number) {
            true => self.pause(self.promised.map(|(time, _)| time - now)),
            false => self.resend(true),
        }
    }

    /// Notes the delay that a refusal states. If an earlier one isn't over, only a longer one counts, or one that ends
    /// earlier: a provider that always states the same one doesn't mean that the wait starts again.
    fn promise(&mut self, delay: Option<Duration>, now: Timestamp) {
        self.promised = self.promised.filter(|(time, _)| *time > now);
        let Some(delay) = delay else { return };
        let is_kept =
            |&(time, before): &(Timestamp, Duration)| delay <= before && now + delay >= time;
        if !self.promised.as_ref().is_some_and(is_kept) {
            self.promised = Some((now + delay, delay));
        }
    }

    fn pause(&mut self, delay: Option<Duration>) -> Option<Stage<S, Request, C, O>> {
        let wait = delay.unwrap_or_else(|| backoff(self.retries));
        if wait.is_zero() {
            return self.resend(false);
        }
        self.wait(wait)
    }

    fn wait(&self, wait: Duration) -> Option<Stage<S, Request, C, O>> {
        let limiter = self.service.limiter();
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let at = seam::add_nanos(limiter.now(), nanos);
        let is_in_time = self.deadline.is_none_or(|deadline| at <= deadline);
        is_in_time.then(|| Stage::Pausing { sleep: seam::sleep_unless_closed(limiter, at) })
    }

    /// Sends the next attempt after a pause, or returns the last result if the limiter was closed
    /// meanwhile.
    pub(super) fn on_pause_end(&mut self) -> NextStep<S, Request, C, O> {
        match self.resend(false) {
            Some(stage) => NextStep::Stage(stage),
            None => self.give_up(),
        }
    }

    /// Queues the next attempt, in front if the key is held back since the provider refused the last one. Returns `None`
    /// if the limiter refuses the attempt immediately.
    fn resend(&mut self, is_requeued: bool) -> Option<Stage<S, Request, C, O>> {
        let request = self.request.take()?;
        let _entered = self.caller_span.enter();
        let mut classified = self.service.classify(&request).0;
        (classified.number, classified.has_failed) = (self.number, self.has_failed);
        let arrived = self.service.queue_attempt(&classified, self.deadline, is_requeued).ok()?;
        (self.left, self.retries) = (self.left - 1, self.retries + 1);
        if self.left > 0 {
            self.request = request.replay();
        }
        if let Some(journey) = &self.journey {
            journey.begin_attempt();
        }
        Some(Stage::Sending { future: self.service.send_queued(arrived, request, classified) })
    }

    /// Returns the result of the last attempt to the caller.
    fn give_up(&mut self) -> NextStep<S, Request, C, O> {
        finished(self.last.take().expect(HAS_LAST))
    }
}

fn finished<S, Request, C, O>(result: Result<O::Observed, S::Error>) -> NextStep<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    NextStep::Finished(result.map_err(Failure::Inner))
}

const HAS_LAST: &str = "the last result is stored before a retry";
