use super::{Margin, concurrency, fixed_window, sliding_window, token_bucket};
use crate::quota::{Algorithm, Dimension, Limit, SettleAt};

/// A [`Limit`] made ready for the engine: its algorithm resolved, its margin taken off, and when
/// its dimension settles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(super) limit: Limit,
    pub(super) settle: SettleAt,
    pub(super) spec: Spec,
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
        Self { limit: limit.clone(), settle, spec }
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
    pub fn holds(&self) -> bool {
        self.settle != SettleAt::Send || matches!(self.spec, Spec::Concurrency(_))
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
