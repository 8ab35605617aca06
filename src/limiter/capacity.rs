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
/// Dropping the future has no effect.
///
/// # Panics
/// Waiting for a time needs a tokio runtime with timers: a poll outside of one panics, unless the future is
/// ready at once.
#[must_use = "the future does not wait until it is awaited"]
pub struct WaitForCapacity {
    key: Result<(KeyHandle, Gate), Refused>,
    cost: Cost,
    deadline: Option<Timestamp>,
    timer: Option<Sleep>,
}

impl WaitForCapacity {
    pub(super) fn new(key: Result<KeyHandle, Refused>, cost: Cost) -> Self {
        let key = key.map(|key| (key.clone(), key.gate()));
        Self { key, cost, deadline: None, timer: None }
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
        let Self { key, cost, deadline, timer } = &mut *self;
        let (key, gate) = match key {
            Ok((key, gate)) => (key, gate),
            Err(refused) => return Poll::Ready(Err(AcquireError::Refused(refused.clone()))),
        };
        if let Some(error) = wait_error(key, cost, *deadline) {
            return Poll::Ready(Err(error));
        }
        if gate.poll_open(cost, None, cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let Some(deadline) = *deadline else { return Poll::Pending };
        let sleep = || key.entry().core.clock.sleep_until(deadline);
        let sleep = timer.get_or_insert_with(sleep);
        std::task::ready!(sleep.as_mut().poll(cx));
        // The request may fit now although another gate is first and waits for a larger cost.
        Poll::Ready(wait_error(key, cost, Some(deadline)).map_or(Ok(()), Err))
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

/// Returns the error of a request for which waiting cannot succeed.
fn wait_error(key: &KeyHandle, cost: &Cost, deadline: Option<Timestamp>) -> Option<AcquireError> {
    if key.entry().core.is_closed() {
        return Some(AcquireError::Closed);
    }
    let refused = key.refusal(cost)?;
    let (now, earliest) = match refused.wait {
        Wait::Never => return Some(AcquireError::Refused(refused)),
        Wait::At(time) => (refused.asked_at, time),
        Wait::Unknown => (refused.asked_at, Timestamp::UNIX_EPOCH),
    };
    let deadline = deadline.filter(|&time| time <= now || time < earliest)?;
    if deadline > now && key.may_fit_by(cost, deadline) {
        return None;
    }
    Some(AcquireError::DeadlineExceeded { deadline, refused })
}
