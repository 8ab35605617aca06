use std::time::Duration;

use super::clock::nanos;
use super::event::Event;
use super::limiter::Limiter;
use super::shard::hash_of;
use super::slot::Slot;
use super::update::Ignored;
use crate::quota::Window;

/// What one program tells others of a key whose provider asks to wait.
///
/// How long to wait is told, not until when: the clocks of two machines differ.
///
/// ```
/// use std::time::Duration;
/// use tollgate::limiter::{CoolDown, Limiter};
/// let limiter = Limiter::builder().quota("gpt-4o", tollgate::Quota::new().rpm(500)).build()?;
/// let pause = CoolDown::new("gpt-4o", "agent-7", Duration::from_secs(3), limiter.now());
/// assert!(limiter.feedback().apply_cool_down(&pause, "agent-1")? >= limiter.now());
/// assert!(limiter.try_acquire("gpt-4o", &tollgate::Cost::new()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoolDown {
    /// The key.
    pub resource: String,
    /// Who was refused.
    pub agent_id: String,
    /// How long nothing should be sent.
    pub retry_after: Duration,
    /// Why.
    pub reason: String,
    /// When that was, in nanoseconds since the epoch.
    pub timestamp: u64,
}

impl CoolDown {
    /// `resource` pauses for `retry_after`, says `agent_id` at `timestamp` in nanoseconds since the
    /// epoch, and gives no reason.
    pub fn new(
        resource: impl Into<String>,
        agent_id: impl Into<String>,
        retry_after: Duration,
        timestamp: u64,
    ) -> Self {
        let (resource, agent_id) = (resource.into(), agent_id.into());
        Self { resource, agent_id, retry_after, reason: String::new(), timestamp }
    }

    /// The same, and why.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }
}

impl Limiter {
    pub(super) fn apply_cool_down(&self, cool_down: &CoolDown, own: &str) -> Result<u64, Ignored> {
        let (pace, key) = (*self.core.reduction.read(), cool_down.resource.as_str());
        match () {
            () if cool_down.agent_id == own => return Err(Ignored::Own),
            () if cool_down.retry_after.is_zero() => return Err(Ignored::Zero),
            () if !self.peek(key, |slot, _| slot.plan.known).unwrap_or(false) => {
                return Err(Ignored::Unknown);
            }
            () => {}
        }
        let part = hash_of(&self.core, key) & 0xffff;
        let oldest = pace.map_or(OLDEST, |pace| pace.interval);
        let applied = self.with(key, |slot, now| {
            if cool_down.timestamp.abs_diff(now) > oldest {
                return Err(Ignored::Stale);
            }
            let delay = nanos(cool_down.retry_after).min(slot.longest_pause());
            if now.saturating_add(delay) <= slot.sends_at(now) {
                return Err(Ignored::NotLonger);
            }
            let until = slot.cool(delay, (pace, part), now);
            if pace.is_some() {
                slot.drain(None, until);
            }
            Ok((until, slot.told().2))
        });
        let (until, wakers) = applied.ok_or(Ignored::Unknown)??;
        wakers.ring();
        let agent = Some(cool_down.agent_id.as_str().into());
        self.core.events.announce(|| Event::CoolingDown { key: key.into(), until, agent });
        Ok(until)
    }
}

impl Slot {
    /// How long another program may pause the key, in nanoseconds.
    fn longest_pause(&self) -> u64 {
        let windows = self.plan.rules.iter().map(|rule| rule.limit().window());
        windows.max().unwrap_or(Window::HOUR).max(Window::HOUR).as_nanos()
    }
}

/// How old a pause may be, in nanoseconds, where no interval of recovery says so.
const OLDEST: u64 = 30_000_000_000;
