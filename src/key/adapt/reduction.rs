use std::time::Duration;

use crate::answer::error::BuildError;

/// How far a key is reduced when its provider refuses a request, and how it recovers.
///
/// Reduced are limits on requests in flight and per less than a day, each to a whole amount and
/// never below 1; an amount per day or longer is what it is. What can be had at all still can: a
/// request above a reduced limit waits until nothing of it is used.
///
/// ```
/// use std::time::Duration;
/// use tollgate::limiter::{Limiter, Reduction};
/// let gently = Reduction::new().factor(0.8).interval(Duration::from_secs(10));
/// let limiter = Limiter::builder().reduction(gently).build()?;
/// let error = Limiter::builder().reduction(gently.factor(1.5)).build().unwrap_err();
/// assert_eq!(error.to_string(), "reduction factor: 1.5 is out of range; set a value above 0 and below 1");
/// # Ok::<(), tollgate::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reduction {
    factor: f64,
    interval: Duration,
    recovery_factor: f64,
    spread: Duration,
    on: bool,
}

impl Reduction {
    /// A refusal only cools its key down, exactly as long as the provider asks.
    pub const OFF: Self = Self { on: false, ..Self::new() };

    /// To half, and back by a tenth every 30 seconds.
    pub const fn new() -> Self {
        Self {
            factor: 0.5,
            interval: Duration::from_secs(30),
            recovery_factor: 1.1,
            spread: Duration::from_millis(500),
            on: true,
        }
    }

    /// Sets the part of the current amount that is left after a refusal, rounded down: above 0 and below 1.
    #[must_use]
    pub const fn factor(self, factor: f64) -> Self {
        Self { factor, ..self }
    }

    /// Sets the time to recover by one step: at least a second.
    #[must_use]
    pub const fn interval(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// What a step of recovery multiplies an amount by, rounded down: from 1.01 to 1,000. A step is
    /// of at least one unit, and of a 1,024th of the original amount, at which it ends.
    #[must_use]
    pub const fn recovery_factor(self, recovery_factor: f64) -> Self {
        Self { recovery_factor, ..self }
    }

    /// By how much a cool-down may be longer than asked for, at random, so that not all who share an
    /// account start again at the same instant: at most this, and an eighth of what was asked for.
    #[must_use]
    pub const fn spread(self, spread: Duration) -> Self {
        Self { spread, ..self }
    }

    pub(crate) fn pace(self) -> Result<Option<Pace>, BuildError> {
        let wrong = |name, value, range| BuildError::OutOfRange { name, value, range };
        let within = |value: f64, least: u32, most: u32| {
            millionths(value).filter(|parts| (least..=most).contains(parts))
        };
        let Self { factor, interval, recovery_factor, spread, on } = self;
        let factor = within(factor, 1, ONE - 1)
            .ok_or_else(|| wrong("reduction factor", factor.to_string(), "above 0 and below 1"))?;
        let recovery = within(recovery_factor, 1_010_000, 1_000 * ONE).ok_or_else(|| {
            wrong("recovery factor", recovery_factor.to_string(), "from 1.01 to 1000")
        })?;
        if interval < Duration::from_secs(1) {
            return Err(wrong("recovery interval", format!("{interval:?}"), "of at least 1s"));
        }
        let pace = Pace { factor, interval, recovery, spread };
        Ok(on.then_some(pace))
    }
}

impl Default for Reduction {
    fn default() -> Self {
        Self::new()
    }
}

/// A [`Reduction`] with its factors in millionths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    factor: u32,
    pub(crate) interval: Duration,
    recovery: u32,
    pub(crate) spread: Duration,
}

impl Pace {
    /// An amount after a refusal.
    pub(crate) fn reduce(self, amount: u64) -> u64 {
        part(amount, self.factor).max(1)
    }

    /// An amount one step of recovery later.
    pub(crate) fn recover(self, amount: u64, original: u64) -> u64 {
        let least = (original / PARTS).max(1);
        part(amount, self.recovery).max(amount.saturating_add(least)).min(original)
    }
}

/// A positive number in millionths, rounded.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0 to 2^32")]
pub(crate) fn millionths(value: f64) -> Option<u32> {
    let parts = value * f64::from(ONE) + 0.5;
    (parts >= 0.0 && parts < f64::from(u32::MAX)).then_some(parts as u32)
}

fn part(amount: u64, millionths: u32) -> u64 {
    let part = u128::from(amount) * u128::from(millionths) / u128::from(ONE);
    u64::try_from(part).unwrap_or(u64::MAX)
}

const ONE: u32 = 1_000_000;

/// In so many equal steps at most a key recovers: the smallest factor takes over from them at a
/// tenth of the amount, and needs 235 more. All steps are caught up with at once after an idle time.
const PARTS: u64 = 1_024;
