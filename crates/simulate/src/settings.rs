//! The settings of the simulated provider.

use std::str::FromStr;
use std::time::Duration;
use std::{error, fmt};

use super::exceeded_limit::LimitKind;
use super::fault::Fault;
use super::limit_change::LimitChange;
use super::other_use::OtherUse;
use super::random::OutputSize;
use super::retry_after::RetryAfter;
use super::spend_limit::SpendLimit;

/// The settings of a [`Provider`](super::Provider). By default there are no limits and no latency.
///
/// Limits apply to each model name separately, except that on spending.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Requests per minute. For all limits, `None` and 0 are unlimited.
    pub rpm: Option<u64>,
    /// Tokens per minute: for OpenAI as [`charge`](Self::charge) counts them, for Anthropic input
    /// and output, for Gemini input only.
    pub tpm: Option<u64>,
    /// Input tokens per minute (Anthropic only).
    pub itpm: Option<u64>,
    /// Output tokens per minute (Anthropic only).
    pub otpm: Option<u64>,
    /// Requests per day: 24 hours for OpenAI, until midnight in Los Angeles for Gemini; Anthropic
    /// has no such limit.
    pub rpd: Option<u64>,
    /// The metering algorithm of the limits.
    pub algorithm: LimitAlgorithm,
    /// The part of its minute that a token bucket can hold; all of it if `None`.
    pub burst: Option<Duration>,
    /// The length of the windows in which a limit per minute or on spending is enforced, with its
    /// part of the amount; a minute or ten if `None`. Token buckets have no windows.
    pub window: Option<Duration>,
    /// Requests in flight.
    pub concurrency: Option<u64>,
    /// The limit on spending, of all models of an API together.
    pub spend: Option<SpendLimit>,
    /// The use of the limits by others.
    pub others: Option<OtherUse>,
    /// Changes of all limits, in any order.
    pub changes: Vec<LimitChange>,
    /// `true` if responses state limits and remaining amounts in headers.
    pub limit_headers: bool,
    /// `true` if refusals name the limit.
    pub named_refusals: bool,
    /// The delay that refusals state.
    pub retry_after: RetryAfter,
    /// The charge rule of requests in OpenAI's format.
    pub charge: ChargeRule,
    /// The shortest and longest time from a request to the end of its response.
    pub latency: (Duration, Duration),
    /// The shortest and longest time from a request to an error: a refusal, a simulated failure, or
    /// the error of a malformed request.
    pub error_latency: (Duration, Duration),
    /// The output tokens of a request that does not set `metadata.output_tokens`.
    pub output: OutputSize,
    /// Simulated failures.
    pub faults: Vec<Fault>,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// A metering algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LimitAlgorithm {
    /// A bucket that starts full and refills continuously, as OpenAI's limits do.
    #[default]
    TokenBucket,
    /// A log that never allows more than the amount in any window.
    SlidingWindow,
    /// Windows that start with the first use after the previous one ended.
    FixedWindow,
    /// Windows that start at multiples of their length since the Unix epoch, as every full minute.
    ClockWindow,
}

/// The rule by which a request in OpenAI's format is charged to the token limit on arrival. The
/// other formats have one rule each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChargeRule {
    /// OpenAI's rule: characters / 4, some tokens per message, and `max_tokens` times `n`.
    #[default]
    OpenAi,
    /// The usage that the response will report: input and output tokens.
    Usage,
}

/// The error for an unknown name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    name: String,
    known: &'static str,
}

impl Settings {
    /// Sets the requests per minute; 0 is unlimited.
    #[must_use]
    pub fn with_rpm(self, rpm: u64) -> Self {
        Self { rpm: limited(rpm), ..self }
    }

    /// Sets the tokens per minute; 0 is unlimited.
    #[must_use]
    pub fn with_tpm(self, tpm: u64) -> Self {
        Self { tpm: limited(tpm), ..self }
    }

    /// Sets the input tokens per minute; 0 is unlimited.
    #[must_use]
    pub fn with_itpm(self, itpm: u64) -> Self {
        Self { itpm: limited(itpm), ..self }
    }

    /// Sets the output tokens per minute; 0 is unlimited.
    #[must_use]
    pub fn with_otpm(self, otpm: u64) -> Self {
        Self { otpm: limited(otpm), ..self }
    }

    /// Sets the requests per day; 0 is unlimited.
    #[must_use]
    pub fn with_rpd(self, rpd: u64) -> Self {
        Self { rpd: limited(rpd), ..self }
    }

    /// Sets the metering algorithm.
    #[must_use]
    pub fn with_algorithm(self, algorithm: LimitAlgorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Limits a token bucket to the amount that refills during `burst`, rounded down, but at least
    /// 1.
    ///
    /// A daily bucket always holds the whole amount.
    #[must_use]
    pub fn with_burst(self, burst: Duration) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// Sets the length of the windows of a limit per minute or on spending: 20 per second instead of
    /// 1,200 per minute, for example. Each holds its part of the amount, rounded down, but at least 1.
    #[must_use]
    pub fn with_window(self, window: Duration) -> Self {
        Self { window: Some(window), ..self }
    }

    /// Sets the maximum requests in flight; 0 is unlimited.
    #[must_use]
    pub fn with_concurrency(self, concurrency: u64) -> Self {
        Self { concurrency: limited(concurrency), ..self }
    }

    /// Sets the limit on spending.
    #[must_use]
    pub fn with_spend(self, spend: SpendLimit) -> Self {
        Self { spend: Some(spend), ..self }
    }

    /// Sets the use of the limits by others.
    #[must_use]
    pub fn with_others(self, others: OtherUse) -> Self {
        Self { others: Some(others), ..self }
    }

    /// Adds a change of all limits.
    #[must_use]
    pub fn with_change(mut self, change: LimitChange) -> Self {
        self.changes.push(change);
        self
    }

    /// Omits the headers with limits and remaining amounts.
    #[must_use]
    pub fn without_limit_headers(self) -> Self {
        Self { limit_headers: false, ..self }
    }

    /// Omits the name and amount of the limit from refusals.
    #[must_use]
    pub fn with_unnamed_refusals(self) -> Self {
        Self { named_refusals: false, ..self }
    }

    /// Sets the delay that refusals state.
    #[must_use]
    pub fn with_retry_after(self, retry_after: RetryAfter) -> Self {
        Self { retry_after, ..self }
    }

    /// Sets the charge rule.
    #[must_use]
    pub fn with_charge(self, charge: ChargeRule) -> Self {
        Self { charge, ..self }
    }

    /// Sets the latency of responses: a random time from `shortest` to `longest`.
    #[must_use]
    pub fn with_latency(self, shortest: Duration, longest: Duration) -> Self {
        Self { latency: (shortest, longest.max(shortest)), ..self }
    }

    /// Sets the latency of errors, refusals included: a random time from `shortest` to `longest`.
    #[must_use]
    pub fn with_error_latency(self, shortest: Duration, longest: Duration) -> Self {
        Self { error_latency: (shortest, longest.max(shortest)), ..self }
    }

    /// Sets the output tokens of requests that do not set `metadata.output_tokens`.
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

    /// Sets the seed of all random numbers.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Returns the amount of a limit per window.
    pub(super) fn amount(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::RequestsPerMinute => self.rpm,
            LimitKind::RequestsPerDay => self.rpd,
            LimitKind::TokensPerMinute => self.tpm,
            LimitKind::InputTokensPerMinute => self.itpm,
            LimitKind::OutputTokensPerMinute => self.otpm,
            LimitKind::Concurrency => self.concurrency,
            LimitKind::Spend => self.spend.as_ref().map(|spend| spend.limit),
        }
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
            window: None,
            concurrency: None,
            spend: None,
            others: None,
            changes: Vec::new(),
            limit_headers: true,
            named_refusals: true,
            retry_after: RetryAfter::default(),
            charge: ChargeRule::default(),
            latency: (Duration::ZERO, Duration::ZERO),
            error_latency: (Duration::ZERO, Duration::ZERO),
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
            "clock-window" => Ok(Self::ClockWindow),
            _ => Err(UnknownName::new(
                name,
                "token-bucket, sliding-window, fixed-window or clock-window",
            )),
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
