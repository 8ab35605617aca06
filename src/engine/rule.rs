use super::{Margin, concurrency, fixed_window, sliding_window, token_bucket};
use crate::quota::{Algorithm, Cost, Dimension, Limit, SettleAt};

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
    Concurrency(concurrency::Spec),
}

impl Rule {
    /// A rule for `limit`; `algorithm` is for a limit that names none.
    ///
    /// A fixed window starts when the provider first counts. If that isn't the sending (`settle`
    /// is not [`SettleAt::Send`]), its phase is unknown, and the rule is a sliding window of the
    /// same length: safe for every phase.
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

    /// The most that one request can ever take.
    pub fn capacity(&self) -> u64 {
        match &self.spec {
            Spec::Token(spec) => spec.burst(),
            _ => self.limit.amount(),
        }
    }

    /// Whether a request keeps something of this rule's bucket until it ends.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Whether its bucket can close while it has room.
    pub(super) fn closes(&self) -> bool {
        matches!(self.spec, Spec::Fixed(_))
    }

    /// What a cost takes of this rule's bucket.
    #[inline]
    pub(super) fn amount(&self, cost: &Cost) -> u64 {
        cost.column(self.column).unwrap_or_else(|| cost.amount(self.limit.dimension()))
    }

    fn spec(limit: &Limit, algorithm: Algorithm, margin: Margin, settle: SettleAt) -> Spec {
        let (amount, window) = (limit.amount(), limit.window());
        match algorithm {
            Algorithm::TokenBucket { burst } => {
                let burst = burst.map_or(amount, u64::from);
                Spec::Token(token_bucket::Spec::new(amount, window, burst, margin))
            }
            Algorithm::FixedWindow if settle == SettleAt::Send => Spec::Fixed(fixed_window::Spec {
                limit: amount,
                window: window.as_nanos(),
                margin: margin.lag_nanos,
            }),
            Algorithm::SlidingWindow | Algorithm::FixedWindow => {
                let span = window.as_nanos().saturating_add(margin.lag_nanos);
                Spec::Sliding(sliding_window::Spec { limit: amount, span })
            }
        }
    }
}
