use clap::{Args, ValueEnum};

use paceline::quota::Algorithm;

/// Limits as arguments. 0 is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct LimitArgs {
    /// Requests per minute; 0 = no limit
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub rpm: Option<u64>,

    /// Tokens per minute, as the provider counts them; 0 = no limit
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub tpm: Option<u64>,

    /// Requests per day; 0 = no limit
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub rpd: Option<u64>,

    /// Rate-limiting algorithm [default: the provider's]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Limits")]
    pub algorithm: Option<AlgorithmName>,
}

impl LimitArgs {
    /// Returns true if no limit is given.
    pub(super) fn is_empty(&self) -> bool {
        self.rpm.is_none() && self.tpm.is_none() && self.rpd.is_none()
    }
}

/// The algorithm of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AlgorithmName {
    /// Continuous refill (OpenAI, Azure, Anthropic, Groq)
    TokenBucket,
    /// At most the limit within any minute or day; safe for every provider
    SlidingWindow,
    /// A window that starts with the first request and restarts after its end
    FixedWindow,
    /// A window that starts with each minute or day of the clock, in UTC
    ClockWindow,
}

impl From<AlgorithmName> for Algorithm {
    fn from(name: AlgorithmName) -> Self {
        match name {
            AlgorithmName::TokenBucket => Self::TokenBucket,
            AlgorithmName::SlidingWindow => Self::SlidingWindow,
            AlgorithmName::FixedWindow => Self::FixedWindow,
            AlgorithmName::ClockWindow => Self::ClockWindow,
        }
    }
}

impl From<AlgorithmName> for paceline_simulate::LimitAlgorithm {
    fn from(name: AlgorithmName) -> Self {
        match name {
            AlgorithmName::TokenBucket => Self::TokenBucket,
            AlgorithmName::SlidingWindow => Self::SlidingWindow,
            AlgorithmName::FixedWindow => Self::FixedWindow,
            AlgorithmName::ClockWindow => Self::ClockWindow,
        }
    }
}
