use super::{Algorithm, Calendar, Dimension, Limit, Share, Window};

/// The limits of one key. A zero or absent limit is unlimited.
///
/// A quota has one limit for each dimension and window: a later one takes the place of an earlier, and
/// a zero takes it away, one on a calendar too (`rpd` replaces requests a calendar day). A limit that
/// names no algorithm is counted as the provider's profile says, and as a sliding window where there
/// is none.
///
/// ```
/// use tollgate::quota::Quota;
/// let openai = Quota::new().rpm(500).tpm(30_000);
/// let anthropic = Quota::new().rpm(50).itpm(40_000).otpm(8_000).concurrency(8);
/// assert!(Quota::new().rpm(0).is_unlimited());
/// # let _ = (openai, anthropic);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    limits: Vec<Limit>,
    shared: bool,
}

impl Quota {
    /// No limits at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests per minute.
    #[must_use]
    pub fn rpm(self, amount: u64) -> Self {
        self.with(Dimension::Requests, amount, Window::MINUTE)
    }

    /// Tokens per minute, as the provider counts them.
    #[must_use]
    pub fn tpm(self, amount: u64) -> Self {
        self.with(Dimension::Tokens, amount, Window::MINUTE)
    }

    /// Requests per day.
    #[must_use]
    pub fn rpd(self, amount: u64) -> Self {
        self.with(Dimension::Requests, amount, Window::DAY)
    }

    /// Tokens per day.
    #[must_use]
    pub fn tpd(self, amount: u64) -> Self {
        self.with(Dimension::Tokens, amount, Window::DAY)
    }

    /// Input tokens per minute.
    #[must_use]
    pub fn itpm(self, amount: u64) -> Self {
        self.with(Dimension::InputTokens, amount, Window::MINUTE)
    }

    /// Output tokens per minute.
    #[must_use]
    pub fn otpm(self, amount: u64) -> Self {
        self.with(Dimension::OutputTokens, amount, Window::MINUTE)
    }

    /// Requests in flight.
    #[must_use]
    pub fn concurrency(self, amount: u64) -> Self {
        self.with(Dimension::Concurrency, amount, Window::MINUTE)
    }

    /// An amount per day, week or month of a calendar. It takes the place of any other limit of the
    /// same dimension per day, week or month.
    #[must_use]
    pub fn on_calendar(self, dimension: Dimension, amount: u64, calendar: &Calendar) -> Self {
        let limit = |dimension| Limit::on_calendar(dimension, amount, calendar);
        self.put(dimension, calendar.window(), limit)
    }

    /// Any limit. It takes the place of one of the same dimension and window.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        let same = |l: &Limit| is(l, limit.dimension(), limit.window());
        match self.limits.iter().position(same) {
            Some(at) => self.limits[at] = limit,
            None => self.limits.push(limit),
        }
        self
    }

    /// The same limits, each counted by `algorithm` unless it names its own or is on a calendar.
    #[must_use]
    pub fn with_algorithm(self, algorithm: Algorithm) -> Self {
        self.map(|limit| if limit.is_open() { limit.with_algorithm(algorithm) } else { limit })
    }

    /// The same limits, each of which lets in a request above it when nothing is used: see
    /// [`Limit::with_debt`].
    #[must_use]
    pub fn with_debt(self) -> Self {
        self.map(Limit::with_debt)
    }

    /// This share of each limit, and of its burst, so that others on the same account keep the
    /// rest: rounded down, but at least 1.
    #[must_use]
    pub fn with_share(self, share: Share) -> Self {
        self.map(|limit| limit.with_share(share))
    }

    /// One set of buckets for all keys that a glob matches, such as the models of a family that
    /// share a pool; otherwise each key has its own.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Whether all keys of a glob share one set of buckets.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// The limits, in the order in which they were given.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        self.limits.is_empty()
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
        self.limits.retain(|l| !is(l, &dimension, window));
        self.limits.extend(limit(dimension));
        self
    }

    fn map(mut self, change: impl FnMut(Limit) -> Limit) -> Self {
        self.limits = self.limits.into_iter().map(change).collect();
        self
    }
}

/// Whether a limit is of this dimension and window; for requests in flight a window means nothing.
fn is(limit: &Limit, dimension: &Dimension, window: Window) -> bool {
    limit.dimension() == dimension
        && (limit.window() == window || *dimension == Dimension::Concurrency)
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::super::Period;
    use super::*;

    #[test]
    fn a_limit_of_the_same_dimension_and_window_is_replaced() {
        let quota = Quota::new().rpm(5).rpd(9).rpm(7);
        let amounts: Vec<_> = quota.limits().iter().map(Limit::amount).collect();
        assert_eq!(amounts, [9, 7]);
    }

    #[test]
    fn zero_takes_a_limit_away() {
        assert!(Quota::new().tpm(5).tpm(0).is_unlimited());
    }

    #[test]
    fn a_day_on_a_calendar_takes_the_place_of_any_other_day_and_zero_takes_it_away() {
        let day = Calendar::new(Period::Day, "UTC").unwrap();
        let quota = Quota::new().rpm(5).rpd(9).on_calendar(Dimension::Requests, 7, &day);
        let amounts: Vec<_> = quota.limits().iter().map(Limit::amount).collect();
        assert_eq!(amounts, [5, 7]);
        assert_eq!(quota.clone().on_calendar(Dimension::Requests, 0, &day), Quota::new().rpm(5));
        let calendars = quota.with_algorithm(Algorithm::FixedWindow);
        assert_eq!(calendars.limits()[1].calendar(), Some(&day));
    }

    #[test]
    fn a_share_is_taken_of_every_limit_and_burst() {
        let burst = Algorithm::TokenBucket { burst: NonZeroU64::new(30) };
        let own = Limit::new(Dimension::Tokens, 1_000, Window::HOUR).unwrap().with_algorithm(burst);
        let quota = Quota::new().rpm(7).concurrency(1).limit(own);
        let part = quota.with_share(Share::percent(25).unwrap());
        let amounts: Vec<_> = part.limits().iter().map(Limit::amount).collect();
        assert_eq!(amounts, [1, 1, 250]);
        let burst = Algorithm::TokenBucket { burst: NonZeroU64::new(7) };
        assert_eq!(part.limits()[2].algorithm(), Some(burst));
    }

    #[test]
    fn an_algorithm_of_its_own_wins() {
        let own = Limit::new(Dimension::Tokens, 5, Window::HOUR)
            .unwrap()
            .with_algorithm(Algorithm::FixedWindow);
        let quota = Quota::new().rpm(5).limit(own).with_algorithm(Algorithm::SlidingWindow);
        let algorithms: Vec<_> = quota.limits().iter().filter_map(Limit::algorithm).collect();
        assert_eq!(algorithms, [Algorithm::SlidingWindow, Algorithm::FixedWindow]);
    }
}
