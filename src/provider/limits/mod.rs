//! What headers say of limits: one table of names for each provider, read by one function.

mod family;
mod per;
mod reset;
mod tables;
mod text;

use std::time::Duration;

use smallvec::SmallVec;

pub(super) use tables::{
    ANTHROPIC, AZURE, BY_NAME, COMPATIBLE, GROQ, OPENAI, OPENROUTER, TOGETHER,
};

use crate::quota::{Dimension, Window};

/// What the headers of one response say of one limit. What they leave out, or write as -1 or as
/// garbage, is `None`; so is what they say twice, and differently.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitReading {
    /// What is limited.
    pub dimension: Dimension,
    /// The window that the limit speaks of.
    pub window: Window,
    /// How much is allowed per window.
    pub limit: Option<u64>,
    /// How much of it the provider says is left, at most the limit.
    pub remaining: Option<u64>,
    /// How long until the limit is *full* again. Waiting for it wastes quota.
    pub reset: Option<Duration>,
    /// What `remaining` is a multiple of: 1 where it is exact, 1,000 for tokens at Anthropic, which
    /// rounds to the nearest. The true value may be off by as much to either side.
    pub granularity: u64,
}

/// The readings of one response: one for each limit, the usual two in place.
pub type LimitReadings = SmallVec<[LimitReading; 2]>;
