use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::LimitArgs;

/// The arguments of `tollgate simulate`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct SimulateArgs {
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8089")]
    pub listen: SocketAddr,

    /// The limits to enforce.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Input tokens per minute, for Anthropic's API only; 0 = no limit
    ///
    /// The remaining amount is rounded to the nearest thousand, as by Anthropic: below 500 it reads
    /// 0.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Limits")]
    pub itpm: u64,

    /// Output tokens per minute, for Anthropic's API only; 0 = no limit
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Limits")]
    pub otpm: u64,

    /// Capacity of a token bucket, in seconds of its rate [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=60))]
    pub burst: Option<u64>,

    /// Charge rule of the token limit, for OpenAI's API
    #[arg(long, value_enum, value_name = "RULE", default_value_t = ChargeRuleName::Openai)]
    pub charge: ChargeRuleName,

    /// Latency in milliseconds: `200`, or uniformly distributed within `50..800`
    #[arg(long, value_name = "MIN..MAX", default_value = "50..800")]
    pub latency_ms: Latency,

    /// Random seed; the same seed gives the same latencies
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The charge rule of the token limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChargeRuleName {
    /// At admission: about characters / 4 + the maximum output tokens
    Openai,
    /// Actual usage, input and output
    Usage,
}

/// A range of latencies, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    min: Duration,
    max: Duration,
}

impl Latency {
    /// Returns the shortest latency.
    pub fn min(self) -> Duration {
        self.min
    }

    /// Returns the longest latency.
    pub fn max(self) -> Duration {
        self.max
    }
}

impl FromStr for Latency {
    type Err = InvalidLatency;

    /// Parses `MIN..MAX` or one number, in milliseconds.
    fn from_str(text: &str) -> Result<Self, InvalidLatency> {
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
        match (millis(min), millis(max)) {
            (Some(min), Some(max)) if min <= max => Ok(Self { min, max }),
            _ => Err(InvalidLatency { text: text.to_owned() }),
        }
    }
}

/// An invalid range of latencies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidLatency {
    /// The given text.
    pub text: String,
}

impl fmt::Display for InvalidLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a latency; write it as MIN..MAX, such as 50..800", self.text)
    }
}

impl std::error::Error for InvalidLatency {}

pub(super) const ABOUT: &str = "\
Run a simulated LLM provider with rate limits.

Speaks the APIs of OpenAI (chat completions, responses, embeddings; also at Azure's paths), \
Anthropic (messages) and Gemini (generateContent), streaming included; the path selects the API. \
Requests over a limit get the provider's own 429 response. Limits apply to each model separately. \
Nothing is stored, and any API key is accepted.";

const EXAMPLES: &str = "\
Example:
  tollgate simulate --rpm 500 --tpm 30000 &
  OPENAI_API_KEY=any tollgate batch examples/requests.jsonl -o out.jsonl \\
    --base-url http://127.0.0.1:8089 --provider openai --rpm 500 --tpm 30000

Exit codes:
  0    interrupted by Ctrl-C or a kill; the counters are printed as JSON
  2    wrong arguments, or an unavailable address
  130  interrupted again, with responses still in progress";
