use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::gate::Gate;
use super::handle::KeyHandle;
use crate::answer::error::{AcquireError, Refused};
use crate::clock::Sleep;
use crate::engine::Wait;
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// A future that is ready when a request would be admitted. Returned by
/// [`Limiter::wait_for_capacity`](super::Limiter::wait_for_capacity).
///
/// # Cancel safety
/// Dropping the future gives up its place, and wakes the next waiters.
///
/// # Panics
/// Waiting for a time needs a tokio runtime with timers: a poll outside of one panics, unless the future is
/// ready at once.
#[must_use = "the future does not wait until it is awaited"]
pub struct WaitForCapacity {
    key: Result<(KeyHandle, Gate), Refused>,
    cost: Cost,
    deadline: Option<Timestamp>,
    /// The time of the first poll that had to wait.
    waits_since: Option<Timestamp>,
    timer: Option<(Timestamp, Sleep)>,
}

impl WaitForCapacity {
    pub(super) fn new(key: Result<KeyHandle, Refused>, cost: Cost) -> Self {
        let key = key.map(|key| (key.clone(), key.gate().without_max_wait()));
        Self { key, cost, deadline: None, waits_since: None, timer: None }
    }

    /// Sets the time until which the future waits, by the limiter's clock. It fails at that time, or as soon
    /// as it is known that the request cannot be admitted by then.
    pub fn deadline(mut self, time: Timestamp) -> Self {
        self.deadline = Some(time);
        self
    }

    /// Sets the deadline to `duration` from now.
    pub fn max_wait(self, duration: Duration) -> Self {
        let now = self
            .key
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |(key, _)| key.entry().core.clock.now());
        self.deadline(now + duration)
    }
}

impl Future for WaitForCapacity {
    type Output = Result<(), AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { key, cost, deadline, waits_since, timer } = &mut *self;
        let (key, gate) = match key {
            Ok((key, gate)) => (key, gate),
            Err(refused) => return Poll::Ready(Err(AcquireError::Refused(refused.clone()))),
        };
        let deadline = match check(key, cost, *deadline, waits_since) {
            Ok(deadline) => deadline,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if gate.poll_open(cost, None, cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let Some(time) = deadline else { return Poll::Pending };
        if timer.as_ref().is_none_or(|(set, _)| *set != time) {
            *timer = Some((time, key.entry().core.clock.sleep_until(time)));
        }
        let (_, sleep) = timer.as_mut().expect("was set above");
        std::task::ready!(sleep.as_mut().poll(cx));
        // The request may fit now although another gate is first and waits for a larger cost.
        Poll::Ready(check(key, cost, deadline, waits_since).map(drop))
    }
}

impl fmt::Debug for WaitForCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCapacity")
            .field("cost", &self.cost)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Returns the time until which the request may wait, or the error if waiting cannot succeed.
fn check(
    key: &KeyHandle,
    cost: &Cost,
    deadline: Option<Timestamp>,
    waits_since: &mut Option<Timestamp>,
) -> Result<Option<Timestamp>, AcquireError> {
    if key.entry().core.is_closed() {
        return Err(AcquireError::Closed);
    }
    let Some((refused, max_wait)) = key.refusal(cost) else { return Ok(deadline) };
    let (now, earliest) = match refused.wait {
        Wait::Never => return Err(AcquireError::Refused(refused)),
        Wait::At(time) => (refused.asked_at, time),
        Wait::Unknown => (refused.asked_at, Timestamp::UNIX_EPOCH),
    };
    let since = *waits_since.get_or_insert(now);
    let deadline = deadline.into_iter().chain(max_wait.map(|wait| since + wait)).min();
    match deadline {
        Some(time) if time <= now || time < earliest && !key.may_fit_by(cost, time) => {
            Err(AcquireError::DeadlineExceeded { deadline: time, refused })
        }
        _ => Ok(deadline),
    }
}
