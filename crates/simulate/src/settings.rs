//! What the simulated provider enforces, and how it answers.

use std::str::FromStr;
use std::time::Duration;
use std::{error, fmt};

use super::fault::Fault;
use super::random::OutputSize;
use super::refusal::LimitKind;

/// What a [`Provider`](super::Provider) enforces. By default nothing is limited, and every
/// request is answered at once.
///
/// The limits apply to each model name apart.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Requests per minute; `None` and 0 are unlimited, as in the other limits.
    pub rpm: Option<u64>,
    /// Tokens per minute: of OpenAI as [`charge`](Self::charge) counts them, of Anthropic input and
    /// output, of Gemini input alone.
    pub tpm: Option<u64>,
    /// Input tokens per minute, which Anthropic alone limits.
    pub itpm: Option<u64>,
    /// Output tokens per minute, which Anthropic alone limits.
    pub otpm: Option<u64>,
    /// Requests per day: of 24 hours, of Gemini until midnight in Los Angeles; Anthropic has no such
    /// limit.
    pub rpd: Option<u64>,
    /// How the limits are metered.
    pub algorithm: LimitAlgorithm,
    /// How much of its minute a token bucket can hold; the whole of it where `None`.
    pub burst: Option<Duration>,
    /// What a request in OpenAI's format takes from the token limit.
    pub charge: ChargeRule,
    /// Shortest and longest time from the request to the end of its answer.
    pub latency: (Duration, Duration),
    /// Output tokens of a request that does not say them itself.
    pub output: OutputSize,
    /// Requests that fail for another reason than a limit.
    pub faults: Vec<Fault>,
    /// What all draws depend on.
    pub seed: u64,
}

/// How a limit is metered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LimitAlgorithm {
    /// Full at first, refilled all the time: what OpenAI does.
    #[default]
    TokenBucket,
    /// Never more than the amount in any window.
    SlidingWindow,
    /// Windows that begin with the first use after the last one ended.
    FixedWindow,
}

/// What a request in OpenAI's format takes from the token limit, when it is received. The other
/// formats have one rule each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChargeRule {
    /// OpenAI's rule: characters / 4, some tokens per message, and `max_tokens` times `n`.
    #[default]
    OpenAi,
    /// What the response will state: input and output tokens.
    Usage,
}

/// A name that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    name: String,
    known: &'static str,
}

impl Settings {
    /// Allows so many requests per minute; 0 is unlimited.
    #[must_use]
    pub fn with_rpm(self, rpm: u64) -> Self {
        Self { rpm: limited(rpm), ..self }
    }

    /// Allows so many tokens per minute; 0 is unlimited.
    #[must_use]
    pub fn with_tpm(self, tpm: u64) -> Self {
        Self { tpm: limited(tpm), ..self }
    }

    /// Allows so many input tokens per minute; 0 is unlimited.
    #[must_use]
    pub fn with_itpm(self, itpm: u64) -> Self {
        Self { itpm: limited(itpm), ..self }
    }

    /// Allows so many output tokens per minute; 0 is unlimited.
    #[must_use]
    pub fn with_otpm(self, otpm: u64) -> Self {
        Self { otpm: limited(otpm), ..self }
    }

    /// Allows so many requests per day; 0 is unlimited.
    #[must_use]
    pub fn with_rpd(self, rpd: u64) -> Self {
        Self { rpd: limited(rpd), ..self }
    }

    /// Meters by this algorithm.
    #[must_use]
    pub fn with_algorithm(self, algorithm: LimitAlgorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Lets a token bucket hold what flows in during `burst`, rounded down, but at least 1.
    ///
    /// The day's bucket always holds the whole amount.
    #[must_use]
    pub fn with_burst(self, burst: Duration) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// Charges by this rule.
    #[must_use]
    pub fn with_charge(self, charge: ChargeRule) -> Self {
        Self { charge, ..self }
    }

    /// Ends an answer between `shortest` and `longest` after its request.
    #[must_use]
    pub fn with_latency(self, shortest: Duration, longest: Duration) -> Self {
        Self { latency: (shortest, longest.max(shortest)), ..self }
    }

    /// Draws output tokens so, where a request does not say them in `metadata.output_tokens`.
    #[must_use]
    pub fn with_output(self, output: OutputSize) -> Self {
        Self { output, ..self }
    }

    /// Adds a fault.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Draws from this seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// What a limit allows per window.
    pub(super) fn amount(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::RequestsPerMinute => self.rpm,
            LimitKind::RequestsPerDay => self.rpd,
            LimitKind::TokensPerMinute => self.tpm,
            LimitKind::InputTokensPerMinute => self.itpm,
            LimitKind::OutputTokensPerMinute => self.otpm,
        }
    }

    /// The most that a limit can hold at once.
    pub(super) fn capacity(&self, kind: LimitKind, amount: u64) -> u64 {
        let (LimitAlgorithm::TokenBucket, Some(burst)) = (self.algorithm, self.burst) else {
            return amount;
        };
        if kind == LimitKind::RequestsPerDay {
            return amount;
        }
        let window = u128::from(kind.window_ns());
        let part = u128::from(amount) * burst.as_nanos().min(window) / window;
        u64::try_from(part).unwrap_or(amount).max(1)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rpm: None,
            tpm: None,
            itpm: None,
            otpm: None,
            rpd: None,
            algorithm: LimitAlgorithm::default(),
            burst: None,
            charge: ChargeRule::default(),
            latency: (Duration::ZERO, Duration::ZERO),
            output: OutputSize::default(),
            faults: Vec::new(),
            seed: 0,
        }
    }
}

impl FromStr for LimitAlgorithm {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name.replace('_', "-").as_str() {
            "token-bucket" => Ok(Self::TokenBucket),
            "sliding-window" => Ok(Self::SlidingWindow),
            "fixed-window" => Ok(Self::FixedWindow),
            _ => Err(UnknownName::new(name, "token-bucket, sliding-window or fixed-window")),
        }
    }
}

impl FromStr for ChargeRule {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "openai" => Ok(Self::OpenAi),
            "usage" => Ok(Self::Usage),
            _ => Err(UnknownName::new(name, "openai or usage")),
        }
    }
}

impl UnknownName {
    fn new(name: &str, known: &'static str) -> Self {
        Self { name: name.to_owned(), known }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown name `{}`; expected {}", self.name, self.known)
    }
}

impl error::Error for UnknownName {}

fn limited(amount: u64) -> Option<u64> {
    (amount > 0).then_some(amount)
}
