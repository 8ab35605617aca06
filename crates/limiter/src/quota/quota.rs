use core::time::Duration;

use super::{Algorithm, Calendar, Dimension, Limit, Margin, Period, Share, Usd, Window};

/// The limits of one key. A limit that is zero or absent doesn't restrict anything.
///
/// A quota has at most one limit per dimension and window. A later limit replaces an earlier one of the
/// same dimension and window, and an amount of zero removes it; the same applies to calendars (`rpd`
/// replaces requests per calendar day). A limit without an algorithm of its own is counted as the
/// provider's profile defines if the key is a model: one that the profile's quotas name
/// (`Profile::quotas`), or that the layer has read from a request. The limits of other keys, such as a tenant
/// or an account, and limits on money are counted as a sliding window.
///
/// ```
/// use paceline_limiter::quota::Quota;
/// let openai = Quota::new().rpm(500).tpm(30_000);
/// let anthropic = Quota::new().rpm(50).itpm(40_000).otpm(8_000).concurrency(8);
/// assert!(Quota::new().rpm(0).is_unlimited());
/// # let _ = (openai, anthropic);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    // Every form of a quota (configuration, API, stores) destructures and constructs it with all fields, so
    // that none compiles without a new field.
    pub(crate) limits: Vec<Limit>,
    pub(crate) shared: bool,
    pub(crate) margin: Option<Margin>,
    pub(crate) weight: Option<u32>,
    pub(crate) utilization: Option<Share>,
    /// The longest wait for these limits; zero refuses a request that doesn't fit at once.
    pub(crate) max_wait: Option<Duration>,
}

impl Quota {
    /// Creates a quota without limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the requests per minute.
    #[must_use]
    pub fn rpm(self, amount: u64) -> Self {
        self.with(Dimension::Requests, amount, Window::MINUTE)
    }

    /// Sets the tokens per minute, as the provider counts them.
    #[must_use]
    pub fn tpm(self, amount: u64) -> Self {
        self.with(Dimension::Tokens, amount, Window::MINUTE)
    }

    /// Sets the requests per day.
    #[must_use]
    pub fn rpd(self, amount: u64) -> Self {
        self.with(Dimension::Requests, amount, Window::DAY)
    }

    /// Sets the tokens per day.
    #[must_use]
    pub fn tpd(self, amount: u64) -> Self {
        self.with(Dimension::Tokens, amount, Window::DAY)
    }

    /// Sets the input tokens per minute.
    #[must_use]
    pub fn itpm(self, amount: u64) -> Self {
        self.with(Dimension::InputTokens, amount, Window::MINUTE)
    }

    /// Sets the output tokens per minute.
    #[must_use]
    pub fn otpm(self, amount: u64) -> Self {
        self.with(Dimension::OutputTokens, amount, Window::MINUTE)
    }

    /// Sets the money per day of UTC. For the days of another time zone see
    /// [`on_calendar`](Self::on_calendar).
    ///
    /// ```
    /// use paceline_limiter::quota::{Limit, Quota, Usd, Window};
    /// use std::time::Duration;
    /// // $50 a day, and $10 in any ten minutes.
    /// let window = Window::new(Duration::from_secs(600)).expect("a valid window");
    /// let quota = Quota::new()
    ///     .usd_per_day(Usd::from_dollars(50))
    ///     .limit(Limit::usd(Usd::from_dollars(10), window));
    /// assert_eq!(quota.limits().len(), 2);
    /// ```
    #[must_use]
    pub fn usd_per_day(self, amount: Usd) -> Self {
        self.usd_on(Period::Day, amount)
    }

    /// Sets the money per month of UTC, from its first day to the first day of the next.
    #[must_use]
    pub fn usd_per_month(self, amount: Usd) -> Self {
        self.usd_on(Period::Month, amount)
    }

    fn usd_on(self, period: Period, amount: Usd) -> Self {
        self.on_calendar(Dimension::usd(), amount.as_micros(), &Calendar::utc(period))
    }

    /// Sets the money in all: a limit that never resets, as the totals of tokens and requests; see
    /// [`Limit::total`]. A total that is removed and set again starts with nothing used.
    ///
    /// ```
    /// use paceline_limiter::quota::{Quota, Usd};
    /// let session = Quota::new().usd_total(Usd::from_dollars(5)).requests_total(1_000);
    /// assert_eq!(session.limits().len(), 2);
    /// ```
    #[must_use]
    pub fn usd_total(self, amount: Usd) -> Self {
        self.with(Dimension::usd(), amount.as_micros(), Window::ENDLESS)
    }

    /// Sets the tokens in all, as the provider counts them; see [`Limit::total`].
    #[must_use]
    pub fn tokens_total(self, amount: u64) -> Self {
        self.with(Dimension::Tokens, amount, Window::ENDLESS)
    }

    /// Sets the requests in all; see [`Limit::total`].
    #[must_use]
    pub fn requests_total(self, amount: u64) -> Self {
        self.with(Dimension::Requests, amount, Window::ENDLESS)
    }

    /// Sets the number of requests in flight.
    #[must_use]
    pub fn concurrency(self, amount: u64) -> Self {
        self.with(Dimension::Concurrency, amount, Window::MINUTE)
    }

    /// Sets an amount per day, week or month of a calendar. It replaces any other limit of the same
    /// dimension per day, week or month.
    #[must_use]
    pub fn on_calendar(self, dimension: Dimension, amount: u64, calendar: &Calendar) -> Self {
        let limit = |dimension| Limit::on_calendar(dimension, amount, calendar);
        self.put(dimension, calendar.window(), limit)
    }

    /// Adds a limit. It replaces one of the same dimension and window. `None`, as the constructors of
    /// [`Limit`] return for an amount of 0, changes nothing.
    ///
    /// ```
    /// use paceline_limiter::quota::{Dimension, Limit, Quota};
    /// let quota = Quota::new().limit(Limit::per_second(Dimension::Requests, 10));
    /// assert_eq!(quota.limits()[0].amount(), 10);
    /// ```
    #[must_use]
    pub fn limit(mut self, limit: impl Into<Option<Limit>>) -> Self {
        let Some(limit) = limit.into() else { return self };
        let same = |l: &Limit| counts(l, limit.dimension(), limit.window());
        match self.limits.iter().position(same) {
            Some(at) => self.limits[at] = limit,
            None => self.limits.push(limit),
        }
        self
    }

    /// Sets the algorithm of each limit that has none of its own, resets and is not on a calendar. Limits on money
    /// ([`Dimension::usd`]) don't become token buckets, which admit more than their amount within a window.
    #[must_use]
    pub fn with_algorithm(self, algorithm: Algorithm) -> Self {
        let refills = algorithm == Algorithm::TokenBucket;
        let is_set = |limit: &Limit| {
            limit.has_profile_algorithm() && !(refills && limit.dimension().is_usd())
        };
        self.map(|limit| match is_set(&limit) {
            true => limit.with_algorithm(algorithm),
            false => limit,
        })
    }

    /// Admits a request that is larger than a limit once the limit is unused; see
    /// [`Limit::with_debt`].
    #[must_use]
    pub fn with_debt(self) -> Self {
        self.map(Limit::with_debt)
    }

    /// Reduces each limit and its burst to a share, so that other users of the account keep the rest:
    /// rounded down, at least 1.
    #[must_use]
    pub fn with_share(self, share: Share) -> Self {
        self.map(|limit| limit.with_share(share))
    }

    /// Sets the margin of these limits, in place of the limiter's
    /// ([`Builder::margin`](crate::limiter::Builder::margin)). One limiter can then have limits of a
    /// provider, which need a margin, and limits of its own server, which need none.
    ///
    /// ```
    /// use paceline_limiter::quota::{Margin, Quota};
    /// use paceline_limiter::Limiter;
    /// let limiter = Limiter::builder()
    ///     .quota("gpt-4o", Quota::new().rpm(500).tpm(30_000))
    ///     .quota("tenant:*", Quota::new().rpm(60).with_margin(Margin::NONE))
    ///     .build()?;
    /// # drop(limiter);
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    #[must_use]
    pub fn with_margin(mut self, margin: Margin) -> Self {
        self.margin = Some(margin);
        self
    }

    /// Sets the weight of the key's requests where flows share the limits of another key, at least 1. Default:
    /// 1; see [`WaitPolicy::fair_by`](crate::limiter::WaitPolicy::fair_by).
    #[must_use]
    pub fn with_weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight.max(1));
        self
    }

    /// Holds the key to a part of the account's windows whose use the provider states, as it does for
    /// subscriptions (Anthropic's 5 hours and 7 days, Codex' windows): once a response says that this part of one
    /// is used, no request of the key is sent until that window starts again.
    ///
    /// The windows are those of the account, but each key learns from its own responses: give the quota to a key
    /// that all requests count under, such as a [shared](Self::shared) glob.
    ///
    /// ```
    /// use paceline_limiter::quota::{Quota, Share};
    /// let subscription = Quota::new().concurrency(4).with_utilization(Share::percent(90)?);
    /// assert_eq!(subscription.utilization(), Some(Share::percent(90)?));
    /// # Ok::<(), paceline_limiter::quota::InvalidShare>(())
    /// ```
    #[must_use]
    pub fn with_utilization(mut self, part: Share) -> Self {
        self.utilization = Some(part);
        self
    }

    /// Bounds the time that a request waits for these limits, from its arrival: it is refused as soon as it is known
    /// that they don't admit it by then. For other keys of the request, and if the request's own bound is shorter,
    /// such as that of its layer, those count.
    ///
    /// ```
    /// use paceline_limiter::quota::{Quota, Usd};
    /// use std::time::Duration;
    /// // A model waits for a minute at most, a budget that is used up refuses at once.
    /// let model = Quota::new().rpm(500).max_wait(Duration::from_secs(60));
    /// let budget = Quota::new().usd_per_day(Usd::from_dollars(50)).reject();
    /// assert_eq!(budget.longest_wait(), Some(Duration::ZERO));
    /// # let _ = model;
    /// ```
    #[must_use]
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    /// Refuses a request that these limits don't admit at once: a [`max_wait`](Self::max_wait) of zero.
    #[must_use]
    pub fn reject(self) -> Self {
        self.max_wait(Duration::ZERO)
    }

    /// Shares one set of buckets among all keys that match a glob, such as the models of a family with a
    /// common limit. By default each key has separate buckets.
    ///
    /// If a quota becomes shared while a limiter runs, the shared buckets count what all of its keys have used or hold. If
    /// it is no longer shared, each key counts all of that, since nobody knows which one used how much.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Returns `true` if all keys that match a glob share one set of buckets.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Returns the margin of these limits, or `None` if the limiter's margin applies.
    pub fn margin(&self) -> Option<Margin> {
        self.margin
    }

    /// Returns the weight of the key's requests where flows share the limits of another key.
    pub fn weight(&self) -> u32 {
        self.weight.unwrap_or(1)
    }

    /// Returns the part of the account's windows to which the key is held.
    pub fn utilization(&self) -> Option<Share> {
        self.utilization
    }

    /// Returns the longest wait for these limits, if they bound it.
    pub fn longest_wait(&self) -> Option<Duration> {
        self.max_wait
    }

    /// Returns the limits, in the order in which they were given.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Returns `true` if a limit never resets.
    pub fn has_total(&self) -> bool {
        self.limits.iter().any(|limit| limit.window().is_endless())
    }

    /// Returns `true` if there are no limits.
    pub fn is_unlimited(&self) -> bool {
        self.limits.is_empty()
    }

    /// Returns the quota without its limits.
    pub(crate) fn without_limits(&self) -> Self {
        let Self { limits: _, shared, margin, weight, utilization, max_wait } = *self;
        Self { limits: Vec::new(), shared, margin, weight, utilization, max_wait }
    }

    fn with(self, dimension: Dimension, amount: u64, window: Window) -> Self {
        self.put(dimension, window, |dimension| Limit::new(dimension, amount, window))
    }

    fn put(
        mut self,
        dimension: Dimension,
        window: Window,
        limit: impl FnOnce(Dimension) -> Option<Limit>,
    ) -> Self {
        self.limits.retain(|l| !counts(l, &dimension, window));
        self.limits.extend(limit(dimension));
        self
    }

    fn map(mut self, change: impl FnMut(Limit) -> Limit) -> Self {
        self.limits = self.limits.into_iter().map(change).collect();
        self
    }
}

/// Returns `true` if a limit has this dimension and window. The window of requests in flight has no
/// meaning.
fn counts(limit: &Limit, dimension: &Dimension, window: Window) -> bool {
    limit.dimension() == dimension
        && (limit.window() == window || *dimension == Dimension::Concurrency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_of_same_dimension_and_window_is_replaced() {
        let quota = Quota::new().rpm(5).rpd(9).rpm(7);
        let amounts: Vec<_> = quota.limits().iter().map(Limit::amount).collect();
        assert_eq!(amounts, [9, 7]);
    }

    #[test]
    fn zero_amount_removes_limit() {
        assert!(Quota::new().tpm(5).tpm(0).is_unlimited());
    }

    #[test]
    fn absent_limit_keeps_quota() {
        let quota = Quota::new().rpm(5);
        assert_eq!(quota.clone().limit(Limit::per_minute(Dimension::Requests, 0)), quota);
        assert_eq!(quota.limit(Limit::per_minute(Dimension::Requests, 7)), Quota::new().rpm(7));
    }

    #[test]
    fn calendar_day_replaces_day_and_zero_removes_both() {
        let day = Calendar::new(Period::Day, "UTC").unwrap();
        let quota = Quota::new().rpm(5).rpd(9).on_calendar(Dimension::Requests, 7, &day);
        let amounts: Vec<_> = quota.limits().iter().map(Limit::amount).collect();
        assert_eq!(amounts, [5, 7]);
        assert_eq!(quota.clone().on_calendar(Dimension::Requests, 0, &day), Quota::new().rpm(5));
        let calendars = quota.with_algorithm(Algorithm::FixedWindow);
        assert_eq!(calendars.limits()[1].calendar(), Some(&day));
    }

    #[test]
    fn share_applies_to_every_limit_and_burst() {
        let own = Limit::per_hour(Dimension::Tokens, 1_000).map(|limit| limit.with_burst(30));
        let quota = Quota::new().rpm(7).concurrency(1).limit(own);
        let part = quota.with_share(Share::percent(25).unwrap());
        let amounts: Vec<_> = part.limits().iter().map(Limit::amount).collect();
        assert_eq!(amounts, [1, 1, 250]);
        assert_eq!(part.limits()[2].algorithm(), Some(Algorithm::TokenBucket));
        assert_eq!(part.limits()[2].burst(), Some(7));
    }

    #[test]
    fn algorithm_of_limit_overrides_algorithm_of_quota() {
        let own = Limit::per_hour(Dimension::Tokens, 5)
            .map(|limit| limit.with_algorithm(Algorithm::FixedWindow));
        let quota = Quota::new().rpm(5).limit(own).with_algorithm(Algorithm::SlidingWindow);
        let algorithms: Vec<_> = quota.limits().iter().filter_map(Limit::algorithm).collect();
        assert_eq!(algorithms, [Algorithm::SlidingWindow, Algorithm::FixedWindow]);
    }
}
