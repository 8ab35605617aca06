use std::time::Duration;

use crate::answer::error::BuildError;

/// The amount by which a key is reduced when its provider refuses a request, and its recovery.
///
/// Limits on requests in flight and limits with a window shorter than a day are reduced, each to a
/// whole amount of at least 1. Limits with a window of a day or longer stay as they are. A request that
/// fits the quota but not the reduced limit waits until the limit is unused.
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::limiter::{Limiter, Reduction};
/// let gently = Reduction::new().factor(0.8).interval(Duration::from_secs(10));
/// let limiter = Limiter::builder().reduction(gently).build()?;
/// let error = Limiter::builder().reduction(gently.factor(1.5)).build().unwrap_err();
/// assert_eq!(error.to_string(), "reduction factor: 1.5 is out of range; set a value above 0 and below 1");
/// # Ok::<(), paceline_limiter::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reduction {
    factor: f64,
    interval: Duration,
    recovery_factor: f64,
    spread: Duration,
    is_on: bool,
    is_adaptive: bool,
    probes_retry_after: bool,
}

impl Reduction {
    /// No reduction: a refusal only cools its key down, for exactly the delay that the provider states.
    pub const OFF: Self = Self { is_on: false, ..Self::new() };

    /// No fixed factor: the limiter measures the provider's limits by its answers, and holds requests to
    /// what it has measured. The default of a limiter.
    ///
    /// It applies to requests that a provider answers: those of client layers. Refusals that are
    /// [reported](crate::limiter::Feedback::rate_limited) otherwise, and updates of other programs, reduce
    /// limits as [`new`](Self::new) does.
    pub const ADAPTIVE: Self = Self { is_adaptive: true, ..Self::new() };

    /// Creates a reduction by a fixed factor: to half, and back by a tenth every 30 seconds.
    pub const fn new() -> Self {
        Self {
            factor: 0.5,
            interval: Duration::from_secs(30),
            recovery_factor: 1.1,
            spread: Duration::from_millis(500),
            is_on: true,
            is_adaptive: false,
            probes_retry_after: true,
        }
    }

    /// Sets the part of the current amount that remains after a refusal: above 0 and below 1. The amount
    /// is rounded down.
    #[must_use]
    pub const fn factor(self, factor: f64) -> Self {
        Self { factor, ..self }
    }

    /// Sets the time between recovery steps: at least a second.
    #[must_use]
    pub const fn interval(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// Sets the factor by which a recovery step multiplies an amount: from 1.01 to 1,000. The amount is
    /// rounded down. A step adds at least one unit and at least a 1,024th of the original amount, and
    /// never exceeds the original amount.
    #[must_use]
    pub const fn recovery_factor(self, recovery_factor: f64) -> Self {
        Self { recovery_factor, ..self }
    }

    /// Sets the longest random extension of a cool-down, so that programs that share an account don't all
    /// start again at the same time. It is at most an eighth of the delay that the provider states.
    #[must_use]
    pub const fn spread(self, spread: Duration) -> Self {
        Self { spread, ..self }
    }

    /// Sets whether one request is sent 2 seconds after a refusal whose `Retry-After` is longer than 5
    /// seconds, to test it. Default: `true`, since some providers always state a minute. If the request is
    /// accepted, long delays of the key are ignored from then on. If it is refused, the delay is obeyed, or
    /// the one that the refusal of the test states, if that is longer or ends earlier. With `false` no request
    /// is sent before the delay is over.
    ///
    /// Only [`ADAPTIVE`](Self::ADAPTIVE) sends it; other reductions obey all delays.
    #[must_use]
    pub const fn probe_retry_after(self, probes_retry_after: bool) -> Self {
        Self { probes_retry_after, ..self }
    }

    pub(crate) fn pace(self) -> Result<Option<Pace>, BuildError> {
        let wrong = |name, value, range| BuildError::OutOfRange { name, value, range };
        let within = |value: f64, least: u32, most: u32| {
            millionths(value).filter(|parts| (least..=most).contains(parts))
        };
        let Self { factor, interval, recovery_factor, spread, .. } = self;
        let Self { is_on, is_adaptive, probes_retry_after, .. } = self;
        let factor = within(factor, 1, ONE - 1)
            .ok_or_else(|| wrong("reduction factor", factor.to_string(), "above 0 and below 1"))?;
        let recovery = within(recovery_factor, 1_010_000, 1_000 * ONE).ok_or_else(|| {
            wrong("recovery factor", recovery_factor.to_string(), "from 1.01 to 1000")
        })?;
        if interval < Duration::from_secs(1) {
            return Err(wrong("recovery interval", format!("{interval:?}"), "of at least 1s"));
        }
        let pace = Pace { factor, interval, recovery, spread, is_adaptive, probes_retry_after };
        Ok(is_on.then_some(pace))
    }
}

impl Default for Reduction {
    fn default() -> Self {
        Self::ADAPTIVE
    }
}

/// A [`Reduction`] with its factors in millionths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    factor: u32,
    pub(crate) interval: Duration,
    recovery: u32,
    pub(crate) spread: Duration,
    /// `true` if the limiter measures the provider's limits.
    pub(crate) is_adaptive: bool,
    /// `true` if a request tests a long `Retry-After`.
    pub(crate) probes_retry_after: bool,
}

/// The pace of a limiter, with its part of the spread for one key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyPace {
    /// `None` if a refusal reduces no limit.
    pub(crate) pace: Option<Pace>,
    /// The part of the spread that is added to a cool-down, in 65,536ths.
    pub(crate) spread_part: u64,
}

impl Pace {
    /// Returns an amount after a refusal.
    pub(crate) fn reduce(self, amount: u64) -> u64 {
        part(amount, self.factor).max(1)
    }

    /// Returns an amount after a recovery step.
    pub(crate) fn recover(self, amount: u64, original: u64) -> u64 {
        let least = (original / PARTS).max(1);
        part(amount, self.recovery).max(amount.saturating_add(least)).min(original)
    }
}

/// Returns a positive number in millionths, rounded; `None` if it is out of range.
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

/// The least recovery step is the original amount divided by this. That bounds the number of steps,
/// which are all caught up with after an idle time: with the smallest factor, the least step applies
/// below about a tenth of the amount, and 235 larger steps follow.
const PARTS: u64 = 1_024;
