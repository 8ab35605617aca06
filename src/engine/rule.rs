use super::{concurrency, fixed_window, grid_window, sliding_window, token_bucket};
use crate::quota::{Algorithm, Cost, Dimension, Limit, Margin, SettleAt};
use crate::timestamp::Timestamp;

/// A [`Limit`] made ready for the engine: its algorithm resolved, its margin taken off, and when
/// its dimension settles.
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
    /// A rule for `limit`; `algorithm` is for a limit that names none.
    ///
    /// A fixed window starts when the provider first counts. If that isn't the sending (`settle`
    /// is not [`SettleAt::Send`]), its phase is unknown, and the rule is a sliding window of the
    /// same length: safe for every phase.
    ///
    /// A window of a clock or calendar stays what it is whenever its dimension settles: what is held
    /// counts before a boundary and after. But one that is shorter than 16 times the margin's lag is
    /// a sliding window as long as its longest, so that it needn't be closed for much of its time.
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

    /// The limit that the rule enforces.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// The dimension that the rule counts.
    pub fn dimension(&self) -> &Dimension {
        self.limit.dimension()
    }

    /// Whether both limit the same, in whatever amount: what was used under one goes on under the other.
    pub fn is_standing(&self, other: &Self) -> bool {
        let any_window = *self.dimension() == Dimension::Concurrency;
        self.dimension() == other.dimension()
            && (any_window || self.limit.window() == other.limit.window())
    }

    /// The most that its bucket can hold.
    pub fn capacity(&self) -> u64 {
        match &self.spec {
            Spec::Token(spec) => spec.burst(),
            _ => self.limit.amount(),
        }
    }

    /// Whether a request of this cost is ever let in.
    pub fn can_hold(&self, cost: &Cost) -> bool {
        self.needed(self.amount(cost)) <= self.capacity()
    }

    /// Whether a request keeps something of this rule's bucket until it ends.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Whether its bucket refills all the time. More than was reserved is taken of it when that is
    /// known; of a window, where it was sent.
    pub fn refills(&self) -> bool {
        matches!(self.spec, Spec::Token(_))
    }

    /// Whether its window starts at its first use.
    #[cfg_attr(
        not(feature = "redis"),
        expect(dead_code, reason = "for what several machines share")
    )]
    pub(crate) fn is_anchored(&self) -> bool {
        matches!(self.spec, Spec::Fixed(_))
    }

    /// Whether its bucket can close while it has room.
    pub(super) fn closes(&self) -> bool {
        match &self.spec {
            Spec::Fixed(_) => true,
            Spec::Grid(spec) => spec.margin > 0,
            _ => false,
        }
    }

    /// Whether what was taken at `at` no longer counts, because another window has begun.
    pub(super) fn is_past(&self, at: Timestamp, now: Timestamp) -> bool {
        matches!(&self.spec, Spec::Grid(spec) if at < spec.grid.around(now).start)
    }

    /// The largest amount of a request that is ever let in: the limit may be a part of a larger one,
    /// or go into debt.
    pub fn largest(&self) -> u64 {
        let whole = self.limit.whole().unwrap_or(0);
        if self.limit.has_debt() { u64::MAX } else { whole.max(self.capacity()) }
    }

    /// What must be free for a request to be let in that takes this amount.
    pub(crate) fn needed(&self, amount: u64) -> u64 {
        if amount <= self.largest() { amount.min(self.capacity()) } else { amount }
    }

    /// What a cost takes of this rule's bucket.
    #[inline]
    pub fn amount(&self, cost: &Cost) -> u64 {
        cost.column(self.column).unwrap_or_else(|| self.custom_amount(cost))
    }

    // Apart, so that the loops over built-in dimensions stay in registers.
    #[cold]
    #[inline(never)]
    fn custom_amount(&self, cost: &Cost) -> u64 {
        cost.amount(self.limit.dimension())
    }

    fn spec(limit: &Limit, algorithm: Algorithm, margin: Margin, settle: SettleAt) -> Spec {
        let (amount, window, lag) = (limit.amount(), limit.window(), margin.lag_nanos());
        if let Some(grid) = limit.grid(algorithm) {
            if grid.shortest() / LAGS >= lag {
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

/// A window that closes is at least so many lags long. It is closed for two of them, so that among
/// up to seven such rules of a key there is a time within sixteen lags at which all are open.
const LAGS: u64 = 16;
