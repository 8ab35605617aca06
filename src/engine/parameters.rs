use super::rule::{Rule, Spec};
use crate::quota::Grid;

/// The parameters of a [`Rule`]'s algorithm, for shared limits, whose buckets are in a store. Times are in
/// nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parameters<'a> {
    /// A token has `per_token` units, of which `per_nano` refill per nanosecond. `margin` units are left
    /// unused.
    Token {
        burst: u64,
        per_nano: u32,
        per_token: u64,
        margin: u128,
    },
    /// At most the limit in any span, which includes the margin.
    Sliding {
        limit: u64,
        span: u64,
    },
    Fixed {
        limit: u64,
        window: u64,
        margin: u64,
    },
    Grid {
        limit: u64,
        margin: u64,
        grid: &'a Grid,
    },
    Concurrency {
        limit: u64,
    },
}

impl Rule {
    /// Returns the parameters of the algorithm.
    pub(crate) fn parameters(&self) -> Parameters<'_> {
        match &self.spec {
            Spec::Token(spec) => {
                let (per_nano, per_token, margin) = spec.rate();
                Parameters::Token { burst: spec.burst(), per_nano, per_token, margin }
            }
            Spec::Sliding(spec) => Parameters::Sliding { limit: spec.limit, span: spec.span },
            Spec::Fixed(spec) => {
                Parameters::Fixed { limit: spec.limit, window: spec.window, margin: spec.margin }
            }
            Spec::Grid(spec) => {
                Parameters::Grid { limit: spec.limit, margin: spec.margin, grid: &spec.grid }
            }
            Spec::Concurrency(spec) => Parameters::Concurrency { limit: spec.limit },
        }
    }
}
