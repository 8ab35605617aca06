use std::time::Duration;

use tower_service::Service;
use tracing::Span;

use super::backoff::backoff;
use super::future::Stage;
use super::judge::{Judge, Judged, Verdict};
use super::replay::Replay;
use crate::middleware::error::Failure;
use crate::middleware::future::Answered;
use crate::middleware::{Classify, Journey, RateLimitService};
use crate::timestamp::Timestamp;

/// What it takes to send a request again.
pub(super) struct Again<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    service: RateLimitService<S, C, O>,
    /// The next to be sent; `None` if there is no other.
    request: Option<Request>,
    left: u32,
    tries: u32,
    /// When to give up, over all tries.
    deadline: Option<Timestamp>,
    journey: Option<Journey>,
    /// What was the current span at the call.
    within: Span,
    /// How the last try went: for the caller, if the next one comes to nothing.
    kept: Option<Result<O::Observed, S::Error>>,
}

/// What follows.
#[expect(clippy::large_enum_variant, reason = "moved once, and not kept")]
pub(super) enum Next<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    Stage(Stage<S, Request, C, O>),
    Ended(Result<O::Observed, Failure<S::Error>>),
}

impl<S, Request, C, O> Again<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    pub(super) fn new(
        service: RateLimitService<S, C, O>,
        (request, times): (Request, u32),
        deadline: Option<Timestamp>,
        journey: Option<Journey>,
    ) -> Self {
        Self {
            service,
            request: Some(request),
            left: times,
            tries: 0,
            deadline,
            journey,
            within: Span::current(),
            kept: None,
        }
    }
}

impl<S, Request, C, O> Again<S, Request, C, O>
where
    S: Service<Request> + Clone,
    S::Error: 'static,
    C: Classify<Request>,
    O: Judge<S::Response>,
    Request: Replay,
{
    /// A try has been answered, has failed, or was not let in.
    pub(super) fn answered(&mut self, answered: Answered<S, Request>) -> Next<S, Request, C, O> {
        let judge = self.service.judge();
        match answered {
            Ok((response, guard)) if self.request.is_some() => {
                self.kept = None;
                match judge.judge(response, guard, self.deadline) {
                    Judged::Judging(judging) => Next::Stage(Stage::Judging { judging }),
                    Judged::Passed(response) => Next::Ended(Ok(response)),
                }
            }
            Ok((response, guard)) => Next::Ended(Ok(judge.observe(response, guard))),
            Err(Failure::Inner(error)) if self.request.is_some() && judge.passes(&error) => {
                self.came_to(Err(error), Verdict::Again(None))
            }
            Err(Failure::Limited(error)) if self.kept.is_some() => {
                drop(error);
                if let Some(journey) = &self.journey {
                    journey.take_back();
                }
                self.give_up()
            }
            Err(failure) => Next::Ended(Err(failure)),
        }
    }

    /// Keeps what a try came to, and goes on to the next one if there is time for it.
    pub(super) fn came_to(
        &mut self,
        came: Result<O::Observed, S::Error>,
        verdict: Verdict,
    ) -> Next<S, Request, C, O> {
        let Verdict::Again(delay) = verdict else { return ended(came) };
        let Some(stage) = self.pause(delay) else { return ended(came) };
        let kept = self.kept.insert(came);
        if let Ok(response) = kept {
            self.service.judge().kept(response);
        }
        Next::Stage(stage)
    }

    fn pause(&mut self, delay: Option<Duration>) -> Option<Stage<S, Request, C, O>> {
        let wait = delay.unwrap_or_else(|| backoff(self.tries));
        if wait.is_zero() {
            return self.resend();
        }
        let limiter = self.service.limiter();
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let at = limiter.now().add_nanos(nanos);
        let in_time = self.deadline.is_none_or(|deadline| at <= deadline);
        in_time.then(|| Stage::Pausing { sleep: limiter.sleep_unless_closed(at) })
    }

    /// The pause is over; a limiter that was closed meanwhile lets nothing more in.
    pub(super) fn paused(&mut self) -> Next<S, Request, C, O> {
        match self.resend() {
            Some(stage) => Next::Stage(stage),
            None => self.give_up(),
        }
    }

    /// The request takes its place in the queue; `None` if the limiter refuses it outright.
    fn resend(&mut self) -> Option<Stage<S, Request, C, O>> {
        let request = self.request.take()?;
        let _within = self.within.enter();
        let classified = self.service.classify(&request).0;
        let arrived = self.service.arrive(&classified, self.deadline).ok()?;
        (self.left, self.tries) = (self.left - 1, self.tries + 1);
        if self.left > 0 {
            self.request = request.replay();
        }
        if let Some(journey) = &self.journey {
            journey.begin_again();
        }
        Some(Stage::Trying { one: self.service.send_arrived(arrived, request, classified) })
    }

    /// The next try came to nothing: what the last one came to is the caller's.
    fn give_up(&mut self) -> Next<S, Request, C, O> {
        ended(self.kept.take().expect(KEPT))
    }
}

fn ended<S, Request, C, O>(came: Result<O::Observed, S::Error>) -> Next<S, Request, C, O>
where
    S: Service<Request>,
    O: Judge<S::Response>,
{
    Next::Ended(came.map_err(Failure::Inner))
}

const KEPT: &str = "what a try came to is kept before the next one";
