mod conflicts;
mod latency;
mod run;
mod schedule;
mod spend;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use paceline::quota::Usd;
use paceline_simulate::{Fault, LimitChange, OtherUse, RetryAfter};

use super::LimitArgs;
use super::batch::above_zero;
pub use conflicts::ConflictingLimits;
pub use latency::{InvalidLatency, Latency};
pub(super) use run::{limit_settings, simulate};
pub use schedule::Storm;

/// The arguments of `paceline simulate`.
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

    /// Requests in flight; 0 = no limit
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Limits")]
    pub concurrency: u64,

    /// Dollars per rolling ten minutes that all models of an API may cost together, with `--charge usd`
    #[arg(long, value_name = "AMOUNT", help_heading = "Limits")]
    pub usd: Option<Usd>,

    /// Prices of models, as a file in LiteLLM's format [default: built-in prices]
    #[arg(long, value_name = "FILE", help_heading = "Limits")]
    pub prices: Option<PathBuf>,

    /// Capacity of a token bucket, as time at its rate [default: 1m]
    ///
    /// 1,200 requests per minute with a burst of 1s are enforced as 20 per second.
    #[arg(long, value_name = "DURATION", value_parser = burst, help_heading = "Limits")]
    pub burst: Option<Duration>,

    /// Length of the windows of the other algorithms and of `--usd`, with its part of the limit
    /// [default: 1m; 10m for --usd]
    #[arg(long, value_name = "DURATION", value_parser = above_zero, help_heading = "Limits")]
    pub window: Option<Duration>,

    /// Let others use a part of the account: 0.5 = half of it, 0.75,20s,40s = three quarters for
    /// 20s, then nothing for 40s
    #[arg(long, value_name = "SHARE[,ON,OFF]", value_parser = schedule::others, help_heading = "Limits")]
    pub others: Option<OtherUse>,

    /// Change all limits at a time after the first request: 150s=x0.25; can be repeated
    #[arg(long, value_name = "TIME=xFACTOR", value_parser = schedule::change, help_heading = "Limits")]
    pub change: Vec<LimitChange>,

    /// Rate-limit headers of responses
    #[arg(long, value_enum, value_name = "FORM", default_value_t = HeadersForm::Auto, help_heading = "Errors")]
    pub headers: HeadersForm,

    /// Limit that a refusal names
    #[arg(long, value_enum, value_name = "FORM", default_value_t = RefusalForm::Named, help_heading = "Errors")]
    pub refusals: RefusalForm,

    /// Delay that a refusal states: `auto` (exact, as the provider states it), `none`, `ms` (exact, in
    /// the header retry-after-ms only), or always these seconds, such as 0 or 60
    #[arg(long, value_name = "FORM", default_value = "auto", value_parser = retry_after, help_heading = "Errors")]
    pub retry_after: RetryAfter,

    /// Latency of errors in milliseconds, such as refusals and storms: `500`, or `50..800`
    #[arg(long, value_name = "MIN..MAX", default_value = "0", help_heading = "Errors")]
    pub error_latency_ms: Latency,

    /// Answer all requests between two times after the first one as overloaded (503; Anthropic: 529):
    /// 100s..130s; can be repeated
    #[arg(long, value_name = "FROM..UNTIL", help_heading = "Errors")]
    pub storm: Vec<Storm>,

    /// Refuse a share of the requests at random, whatever their limits: 0.05 = one in twenty. KIND is what the refusal
    /// speaks of: `rate`, `request` (too large, whenever it is sent), `account` (no money), `window` (a day) or
    /// `capacity` (the provider is full). rate,0.1,20s,40s = one in ten for 20s, then none for 40s. Can be repeated
    #[arg(long, value_name = "KIND,SHARE[,ON,OFF]", value_parser = schedule::refuse, help_heading = "Errors")]
    pub refuse: Vec<Fault>,

    /// What a request is charged: tokens by one of two rules (for OpenAI's API), or money
    #[arg(long, value_enum, value_name = "RULE", default_value_t = ChargeRuleName::Openai)]
    pub charge: ChargeRuleName,

    /// Latency in milliseconds: `200`, or uniformly distributed within `50..800`
    #[arg(long, value_name = "MIN..MAX", default_value = "50..800")]
    pub latency_ms: Latency,

    /// Write a JSON line for each request to a file: time since the first one, latency, status, and
    /// tokens charged
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Random seed; the same seed gives the same latencies
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The rate-limit headers of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HeadersForm {
    /// The headers that the provider sends
    Auto,
    /// No headers
    None,
}

/// The limit that a refusal names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RefusalForm {
    /// The limit that was exceeded, as the provider names it
    Named,
    /// None
    Unnamed,
}

/// What a request is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChargeRuleName {
    /// At admission: about characters / 4 + the maximum output tokens
    Openai,
    /// Actual usage, input and output
    Usage,
    /// The price of the actual usage, to the limit `--usd`; tokens aren't limited
    Usd,
}

fn burst(text: &str) -> Result<Duration, String> {
    match above_zero(text)? {
        burst if burst > MAX_BURST => Err("must be at most 1m".to_owned()),
        burst => Ok(burst),
    }
}

fn retry_after(text: &str) -> Result<RetryAfter, String> {
    match text {
        "auto" => Ok(RetryAfter::Auto),
        "none" => Ok(RetryAfter::None),
        "ms" => Ok(RetryAfter::Milliseconds),
        seconds => match seconds.parse() {
            Ok(seconds) => Ok(RetryAfter::Seconds(seconds)),
            Err(_) => Err("must be auto, none, ms or whole seconds, such as 60".to_owned()),
        },
    }
}

/// The capacity of a whole limit per minute.
const MAX_BURST: Duration = Duration::from_secs(60);

pub(super) const ABOUT: &str = "\
Run a simulated LLM provider with rate limits.

Speaks the APIs of OpenAI (chat completions, responses, embeddings; also at Azure's paths), \
Anthropic (messages) and Gemini (generateContent), streaming included; the path selects the API. \
Requests over a limit get the provider's own 429 response. Limits apply to each model separately, \
that on spending to all models of an API. \
Nothing is stored, and any API key is accepted.";

const EXAMPLES: &str = "\
Example:
  paceline simulate --rpm 500 --tpm 30000 &
  OPENAI_API_KEY=any paceline batch examples/requests.jsonl -o out.jsonl \\
    --base-url http://127.0.0.1:8089 --provider openai --rpm 500 --tpm 30000

  A Gemini project that may spend $10 in any ten minutes:
    paceline simulate --charge usd --usd 10

  A shared pool that refuses one request in ten, whoever sends it:
    paceline simulate --refuse rate,0.1

  A limit of 1,200 RPM that is enforced per second, without headers, and falls to a quarter:
    paceline simulate --rpm 1200 --burst 1s --headers none --change 150s=x0.25

Exit codes:
  0    interrupted by Ctrl-C or a kill; the counters are printed as JSON
  2    wrong arguments, or an unavailable address
  130  interrupted again, with responses still in progress";
