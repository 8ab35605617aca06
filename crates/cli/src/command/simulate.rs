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
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8089")]
    pub listen: SocketAddr,

    /// The limits to enforce.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Input tokens per minute, of Anthropic's format alone; 0 = no limit. What remains is stated to
    /// the nearest thousand, as Anthropic does: below 500 it reads 0
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Limits")]
    pub itpm: u64,

    /// Output tokens per minute, of Anthropic's format alone; 0 = no limit
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Limits")]
    pub otpm: u64,

    /// How much of its minute a token bucket holds, in seconds [default: all of it]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=60))]
    pub burst: Option<u64>,

    /// What a request of OpenAI's format takes from the token limit
    #[arg(long, value_enum, value_name = "RULE", default_value_t = ChargeRule::Openai)]
    pub charge: ChargeRule,

    /// How long an answer takes, in milliseconds: `200`, or evenly drawn from `50..800`
    #[arg(long, value_name = "MIN..MAX", default_value = "50..800")]
    pub latency_ms: Latency,

    /// Seed of what is drawn: the same seed gives the same latencies
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// What a request takes from the token limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChargeRule {
    /// At admission: about characters / 4 + the most output it may ask for
    Openai,
    /// What it will have used, input and output
    Usage,
}

/// How long an answer takes: between two durations, both possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    min: Duration,
    max: Duration,
}

impl Latency {
    /// The shortest.
    pub fn min(self) -> Duration {
        self.min
    }

    /// The longest.
    pub fn max(self) -> Duration {
        self.max
    }
}

impl FromStr for Latency {
    type Err = InvalidLatency;

    /// Reads `MIN..MAX` or one number, in whole milliseconds.
    fn from_str(text: &str) -> Result<Self, InvalidLatency> {
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
        match (millis(min), millis(max)) {
            (Some(min), Some(max)) if min <= max => Ok(Self { min, max }),
            _ => Err(InvalidLatency { text: text.to_owned() }),
        }
    }
}

/// A latency that is no range of milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidLatency {
    /// What was given.
    pub text: String,
}

impl fmt::Display for InvalidLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a latency; write it like 50..800, the smaller first", self.text)
    }
}

impl std::error::Error for InvalidLatency {}

pub(super) const ABOUT: &str = "\
Run a provider that enforces its limits, to try things against.

It speaks the APIs of OpenAI (chat completions, responses, embeddings; at Azure's paths too), Anthropic (messages) and \
Gemini (generateContent), streams included: the path tells which. It answers 429 as each of them \
does when a limit is exceeded. The limits are of each model apart. It keeps nothing, and any key \
will do.";

const EXAMPLES: &str = "\
Example:
  tollgate simulate --rpm 500 --tpm 30000 &
  tollgate batch examples/requests.jsonl -o out.jsonl \\
    --base-url http://127.0.0.1:8089 --rpm 500 --tpm 30000

Exit codes:
  0    interrupted by Ctrl-C or a kill; its counters are printed as JSON
  2    wrong arguments, or an address that can't be listened on
  130  interrupted again, while answers were still on their way";
