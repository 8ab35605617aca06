use super::{Algorithm, Dimension, Limit, Window};

/// The limits of one key. A zero or absent limit is unlimited.
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

    /// The same limits, each counted by `algorithm` unless it names its own.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        for limit in self.limits.iter_mut().filter(|l| l.algorithm().is_none()) {
            *limit = limit.clone().with_algorithm(algorithm);
        }
        self
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

    fn with(mut self, dimension: Dimension, amount: u64, window: Window) -> Self {
        self.limits.retain(|l| !is(l, &dimension, window));
        self.limits.extend(Limit::new(dimension, amount, window));
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
    fn an_algorithm_of_its_own_wins() {
        let own = Limit::new(Dimension::Tokens, 5, Window::HOUR)
            .unwrap()
            .with_algorithm(Algorithm::FixedWindow);
        let quota = Quota::new().rpm(5).limit(own).with_algorithm(Algorithm::SlidingWindow);
        let algorithms: Vec<_> = quota.limits().iter().filter_map(Limit::algorithm).collect();
        assert_eq!(algorithms, [Algorithm::SlidingWindow, Algorithm::FixedWindow]);
    }
}
