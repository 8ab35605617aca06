#[cfg(feature = "tower")]
use std::time::Duration;

use super::cool_down::CoolDown;
use super::error::BuildError;
#[cfg(feature = "tower")]
use super::hold::Hold;
use super::limiter::Limiter;
use super::reduction::Reduction;
use super::refusal::RateLimited;
use super::update::{CapacityUpdate, Ignored};
use crate::provider::LimitReading;

/// A handle for feedback to a [`Limiter`]: the answers of providers, and messages of other programs
/// that share an account.
///
/// The [`middleware`](crate::middleware) and the [bus](crate::cluster) report this by themselves. Call
/// it where requests are sent without them.
///
/// ```
/// use std::time::Duration;
/// use tollgate::limiter::RateLimited;
/// use tollgate::{Cost, Limiter, Quota};
/// let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500)).build()?;
/// limiter.feedback().rate_limited("gpt-4o", &RateLimited::new(Some(Duration::from_secs(3))));
/// assert!(limiter.try_acquire("gpt-4o", &Cost::new()).is_err());
/// # Ok::<(), tollgate::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Feedback<'a>(&'a Limiter);

impl Limiter {
    /// Returns a handle that takes the answers of providers and messages of other programs.
    pub fn feedback(&self) -> Feedback<'_> {
        Feedback(self)
    }
}

impl Feedback<'_> {
    /// Reports that the provider refused a request of this key, with a 429 or because it is
    /// overloaded.
    ///
    /// - The key cools down: no request of the key is sent until the delay has passed, plus a part of
    ///   [`spread`](Reduction::spread) that differs between limiters.
    /// - The refusal shows that the provider's bucket is empty, so token buckets are empty at the end
    ///   of the cool-down: waiting requests start again at the refill rate, and not all at the same
    ///   time. Windows keep their usage.
    /// - The key is [reduced](Reduction): its concurrency limits and those with a window shorter than
    ///   a day, or only those of the dimension that the refusal names, if it names a limited one. A
    ///   burst of refusals reduces the key once: refusals of requests sent before the last reduction
    ///   belong to the same burst.
    /// - The key recovers step by step, the first step an [`interval`](Reduction::interval) after the
    ///   end of the cool-down. Another quota, or [`reset`](Limiter::reset), ends the reduction.
    ///
    /// A refusal [until a reset](RateLimited::until_reset) only starts a cool-down.
    pub fn rate_limited(&self, key: &str, refusal: &RateLimited) {
        self.0.on_rate_limited(key, refusal);
    }

    /// Learns the limits of a key from a response's headers, unless you have set a quota for it.
    ///
    /// Learned limits replace a provider's default quota, which is that of its lowest paid tier. For
    /// a key without any quota, the usage that the headers state is counted too, and a successful
    /// response without limits makes the key unlimited. Later changes of the amounts are followed.
    pub fn learn(&self, key: &str, readings: &[LimitReading]) {
        self.0.learn(key, readings);
    }

    /// Records the number of output tokens of a request of this key.
    pub fn output_seen(&self, key: &str, tokens: u64) {
        self.0.output_seen(key, tokens);
    }

    /// Returns the number of output tokens to expect of a request of this key: the
    /// [`output_quantile`](super::Builder::output_quantile) of its last 64 outputs (by default, nine
    /// of ten had no more). Returns `None` before five outputs were recorded.
    ///
    /// For providers that charge actual output; see
    /// [`Estimate::with_output`](crate::provider::Estimate::with_output).
    ///
    /// ```
    /// let limiter = tollgate::Limiter::builder().build()?;
    /// (1..=10).for_each(|tokens| limiter.feedback().output_seen("claude", tokens * 100));
    /// assert_eq!(limiter.feedback().expected_output("claude"), Some(900));
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    pub fn expected_output(&self, key: &str) -> Option<u64> {
        self.0.expected_output(key)
    }

    /// Reduces a key for a reason other than a reported refusal, at most once in ten seconds. Returns
    /// `true` if it was reduced.
    pub fn reduce(&self, key: &str, reason: &str) -> bool {
        self.0.announce_reduced(key, reason)
    }

    /// Sets the amount by which a refusal reduces a key, and the pace of its recovery.
    ///
    /// Keys that are reduced recover at the new pace. With [`Reduction::OFF`] they have their full
    /// quota again immediately.
    ///
    /// # Errors
    /// [`BuildError::OutOfRange`] for an invalid reduction; nothing has changed then.
    pub fn set_reduction(&self, reduction: &Reduction) -> Result<(), BuildError> {
        self.0.set_reduction(reduction)
    }

    /// Applies another program's reduction of a key: its concurrency limits and those with a window
    /// shorter than a day are reduced in proportion. `own` is this program's name among the agents.
    /// The key recovers as after a refusal. Returns the new capacity.
    ///
    /// # Errors
    /// The reason for which the update is [`Ignored`]; nothing has changed then.
    pub fn apply(&self, update: &CapacityUpdate, own: &str) -> Result<u64, Ignored> {
        self.0.apply(update, own)
    }

    /// Applies another program's cool-down of a key. Returns its end, in nanoseconds since the epoch.
    ///
    /// No request of the key is sent until then. The end includes a part of
    /// [`spread`](Reduction::spread) that differs between limiters, so that they don't all start
    /// again at the same time. Token buckets are empty at the end, as after a
    /// [refusal](Self::rate_limited); the key isn't reduced. `own` is this program's name among the
    /// agents.
    ///
    /// A running cool-down is never shortened. The delay is capped at one hour, or at the longest
    /// window of the key's quota where that is longer: no provider needs more.
    ///
    /// # Errors
    /// The reason for which the cool-down is [`Ignored`]; nothing has changed then.
    pub fn apply_cool_down(&self, cool_down: &CoolDown, own: &str) -> Result<u64, Ignored> {
        self.0.apply_cool_down(cool_down, own)
    }

    /// Stops requests of a key for `delay`, or until it is known what its refusal means. Returns
    /// `None` if the key already cools down for that long, or is refused as unknown.
    #[cfg(feature = "tower")]
    pub(crate) fn hold(&self, key: &str, delay: Duration) -> Option<Hold> {
        self.0.hold(key, delay)
    }

    /// Ends a hold, for a refusal that waiting doesn't resolve.
    #[cfg(feature = "tower")]
    pub(crate) fn let_go(&self, key: &str, hold: Hold) {
        self.0.let_go(key, hold);
    }

    /// Reports a refusal as [`rate_limited`](Self::rate_limited) does, in place of a hold: no request
    /// is sent in between.
    #[cfg(feature = "tower")]
    pub(crate) fn rate_limited_after_hold(
        &self,
        hold: Option<Hold>,
        key: &str,
        refusal: &RateLimited,
    ) {
        self.0.refused_in_place_of(hold, key, refusal);
    }
}
