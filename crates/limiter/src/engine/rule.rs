use core::time::Duration;

use super::{concurrency, fixed_window, grid_window, sliding_window, token_bucket};
use crate::quota::{Algorithm, Cost, Dimension, Limit, Margin, SettleAt};
use crate::timestamp::Timestamp;

/// A [`Limit`] with its algorithm, its margin and the time of settlement resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(super) limit: Limit,
    pub(super) spec: Spec,
    column: usize,
    holds: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spec {
    Token(token_bucket::Spec),
    Sliding(sliding_window::Spec),
    Fixed(fixed_window::Spec),
    Grid(grid_window::Spec),
    Concurrency(concurrency::Spec),
}

impl Rule {
    /// Creates a rule for `limit`. `algorithm` applies if the limit has none of its own.
    ///
    /// A fixed window starts when the provider first counts a request. If that isn't the time of sending
    /// (`settle` is not [`SettleAt::Send`]), its phase is unknown, and the rule is a sliding window of the
    /// same length, which is safe for every phase.
    ///
    /// A limit that never resets is one window without margins.
    ///
    /// A window of a clock or calendar doesn't depend on the time of settlement, since held amounts count
    /// on both sides of a boundary. If it is shorter than 16 times the lag of the margin, the rule is a
    /// sliding window as long as the longest of these windows, since they would otherwise be closed for much
    /// of the time.
    pub fn new(limit: &Limit, algorithm: Algorithm, margin: Margin, settle: SettleAt) -> Self {
        let spec = match limit.dimension() {
            Dimension::Concurrency => {
                Spec::Concurrency(concurrency::Spec { limit: limit.amount() })
            }
            _ => Self::spec(limit, limit.algorithm().unwrap_or(algorithm), margin, settle),
        };
        let holds = settle != SettleAt::Send || matches!(spec, Spec::Concurrency(_));
        let column = limit.dimension().column();
        Self { limit: limit.clone(), spec, column, holds }
    }

    /// Returns the limit that the rule enforces.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the dimension that the rule counts.
    pub fn dimension(&self) -> &Dimension {
        self.limit.dimension()
    }

    /// Returns `true` if both rules count the same dimension and window, so that the usage of one carries
    /// over to the other.
    pub fn counts_same_as(&self, other: &Self) -> bool {
        let any_window = *self.dimension() == Dimension::Concurrency;
        self.dimension() == other.dimension()
            && (any_window || self.limit.window() == other.limit.window())
    }

    /// Returns `true` if both rules count the same, and by the same algorithm, so that a bucket of `old` is one of
    /// this rule.
    pub(crate) fn continues(&self, old: &Self) -> bool {
        self.counts_same_as(old)
            && match (&self.spec, &old.spec) {
                (Spec::Grid(own), Spec::Grid(old)) => own.grid == old.grid,
                (own, old) => core::mem::discriminant(own) == core::mem::discriminant(old),
            }
    }

    /// Returns the capacity of the bucket.
    pub fn capacity(&self) -> u64 {
        match &self.spec {
            Spec::Token(spec) => spec.burst(),
            _ => self.limit.amount(),
        }
    }

    /// Returns `true` if a request of this cost can be admitted at some time.
    pub fn can_admit(&self, cost: &Cost) -> bool {
        self.needed(self.amount(cost)) <= self.capacity()
    }

    /// Returns `true` if the limit never resets.
    pub(crate) fn is_total(&self) -> bool {
        self.limit.window().is_endless()
    }

    /// Returns the time for which an amount occupies the limit, in nanoseconds: amount / rate. It is 0 if the limit has
    /// no rate.
    pub(crate) fn service_time(&self, amount: u64) -> u64 {
        if *self.dimension() == Dimension::Concurrency || self.is_total() {
            return 0;
        }
        let (window, per_window) = (self.limit.window().as_nanos(), self.limit.amount().max(1));
        // A division of 128 bits takes much longer than the rest of an insertion.
        if let Some(product) = amount.checked_mul(window) {
            return product / per_window;
        }
        let time = u128::from(amount) * u128::from(window) / u128::from(per_window);
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// Returns `true` if requests hold their amounts until they end.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Returns `true` if the bucket refills continuously. An excess over the reservation is then taken when
    /// it is known; in a window it is taken at the time of sending.
    pub fn refills(&self) -> bool {
        matches!(self.spec, Spec::Token(_))
    }

    /// Returns the amount that a used-up limit gives back within this time, on average. A window that starts anew gives
    /// back nothing before.
    pub(crate) fn returned_within(&self, time: Duration) -> u64 {
        if !matches!(self.spec, Spec::Token(_) | Spec::Sliding(_)) {
            return 0;
        }
        let window = self.limit.window().as_duration().as_micros().max(1);
        let amount = u128::from(self.limit.amount()) * time.as_micros() / window;
        u64::try_from(amount).unwrap_or(u64::MAX)
    }

    /// Returns `true` if the times of all usage within the window are known.
    pub(crate) fn has_log(&self) -> bool {
        matches!(self.spec, Spec::Sliding(_))
    }

    /// Returns `true` if the window starts at its first use.
    pub(crate) fn is_anchored(&self) -> bool {
        matches!(self.spec, Spec::Fixed(_))
    }

    /// Returns `true` if the window can be closed while it has capacity left.
    pub(super) fn closes(&self) -> bool {
        match &self.spec {
            Spec::Fixed(_) => true,
            Spec::Grid(spec) => spec.margin > 0,
            _ => false,
        }
    }

    /// Returns `true` if usage at `at` no longer counts, because another window has started.
    pub(super) fn is_past(&self, at: Timestamp, now: Timestamp) -> bool {
        matches!(&self.spec, Spec::Grid(spec) if at < spec.grid.around(now).start)
    }

    /// Returns the largest amount that a request can have. It is above the capacity if the limit is a part
    /// of a larger one, or may go into debt.
    pub fn max_amount(&self) -> u64 {
        let whole = self.limit.whole().unwrap_or(0);
        if self.limit.has_debt() { u64::MAX } else { whole.max(self.capacity()) }
    }

    /// Returns the amount that must be available to admit a request of this amount.
    pub(crate) fn needed(&self, amount: u64) -> u64 {
        if amount <= self.max_amount() { amount.min(self.capacity()) } else { amount }
    }

    /// Returns the amount of a cost in the dimension of this rule.
    #[inline]
    pub fn amount(&self, cost: &Cost) -> u64 {
        cost.column(self.column).unwrap_or_else(|| self.custom_amount(cost))
    }

    // Not inlined, so that the loops over built-in dimensions stay in registers.
    #[cold]
    #[inline(never)]
    fn custom_amount(&self, cost: &Cost) -> u64 {
        cost.amount(self.limit.dimension())
    }

    fn spec(limit: &Limit, algorithm: Algorithm, margin: Margin, settle: SettleAt) -> Spec {
        let (amount, window, lag) = (limit.amount(), limit.window(), margin.lag_nanos());
        if let Some(grid) = limit.grid(algorithm) {
            if grid.is_endless() {
                return Spec::Grid(grid_window::Spec { limit: amount, grid, margin: 0 });
            }
            if grid.shortest() / MIN_LAGS >= lag {
                return Spec::Grid(grid_window::Spec { limit: amount, grid, margin: lag });
            }
            let span = grid.longest().saturating_add(lag);
            return Spec::Sliding(sliding_window::Spec { limit: amount, span });
        }
        match algorithm {
            Algorithm::TokenBucket => {
                let burst = limit.burst().unwrap_or(amount);
                Spec::Token(token_bucket::Spec::new(amount, window, burst, margin))
            }
            Algorithm::FixedWindow if settle == SettleAt::Send => Spec::Fixed(fixed_window::Spec {
                limit: amount,
                window: window.as_nanos(),
                margin: lag,
            }),
            _ => {
                let span = window.as_nanos().saturating_add(lag);
                Spec::Sliding(sliding_window::Spec { limit: amount, span })
            }
        }
    }
}

/// The minimum length of a window that closes, in lags. It is closed for two of them, so among up to seven
/// such rules of a key there is a time within sixteen lags at which all are open.
const MIN_LAGS: u64 = 16;
