use super::rule::{Rule, Spec};
use crate::quota::Grid;

/// The parameters of a [`Rule`]'s algorithm, for shared limits, whose buckets are in a store. Times are in
/// nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters<'a> {
    /// A token has `per_token` units, of which `per_nano` refill per nanosecond. `margin` units are left
    /// unused.
    Token {
        /// The amount that the bucket can hold.
        burst: u64,
        /// The units that refill per nanosecond.
        per_nano: u32,
        /// The units of a token.
        per_token: u64,
        /// The units that are left unused.
        margin: u128,
    },
    /// At most the limit in any span, which includes the margin.
    Sliding {
        /// The limit.
        limit: u64,
        /// The span.
        span: u64,
    },
    /// At most the limit in a window that starts at its first use.
    Fixed {
        /// The limit.
        limit: u64,
        /// The length of the window.
        window: u64,
        /// The margin.
        margin: u64,
    },
    /// At most the limit in each window of a grid.
    Grid {
        /// The limit.
        limit: u64,
        /// The margin.
        margin: u64,
        /// The starts of the windows.
        grid: &'a Grid,
    },
    /// At most the limit in flight.
    Concurrency {
        /// The limit.
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
