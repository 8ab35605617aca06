use super::rule::{Rule, Spec};
use crate::quota::Grid;

/// What a [`Rule`]'s algorithm goes by, for whoever keeps its bucket elsewhere. Times are
/// nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terms<'a> {
    /// A token is `per_token` units, and `per_nano` of them refill in a nanosecond; `margin` units
    /// are left unused.
    Token {
        burst: u64,
        per_nano: u32,
        per_token: u64,
        margin: u128,
    },
    /// Never more than the limit in any such span, margin included.
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
    /// The figures of its algorithm.
    pub(crate) fn terms(&self) -> Terms<'_> {
        match &self.spec {
            Spec::Token(spec) => {
                let (per_nano, per_token, margin) = spec.rate();
                Terms::Token { burst: spec.burst(), per_nano, per_token, margin }
            }
            Spec::Sliding(spec) => Terms::Sliding { limit: spec.limit, span: spec.span },
            Spec::Fixed(spec) => {
                Terms::Fixed { limit: spec.limit, window: spec.window, margin: spec.margin }
            }
            Spec::Grid(spec) => {
                Terms::Grid { limit: spec.limit, margin: spec.margin, grid: &spec.grid }
            }
            Spec::Concurrency(spec) => Terms::Concurrency { limit: spec.limit },
        }
    }
}
