use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::redacted_parser::RedactedParser;
use super::{CredentialArgs, LimitArgs, StateArgs};
use crate::batch::target::{Base, InvalidBase};
use crate::batch::{OnChange, Resume, configured};
use paceline::limiter::Priority;
use paceline::provider::Profile;
use paceline_config::{Config, parse_duration};

/// The arguments of `paceline batch`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BatchArgs {
    /// File of requests, one per line: Batch lines of OpenAI, Anthropic or Gemini, or raw request
    /// bodies
    #[arg(value_name = "IN.jsonl")]
    pub input: PathBuf,

    /// File for results, as OpenAI Batch result lines; an existing file is resumed
    #[arg(short, long, value_name = "OUT.jsonl")]
    pub output: PathBuf,

    /// File for failures [default: the output, with `error` set]
    #[arg(long, value_name = "FILE")]
    pub errors: Option<PathBuf>,

    /// Action if input lines have changed since an earlier run finished them
    ///
    /// Each result contains a hash of its request (path and exact body). A line with the custom_id
    /// of a result (or its line number, if it has no custom_id) but another hash has changed.
    /// Results written by versions without hashes count as unchanged.
    #[arg(long, value_enum, value_name = "ACTION", default_value_t)]
    pub changed: OnChange,

    /// Send permanently failed lines of earlier runs again, and replace their results
    ///
    /// Transient failures (429, 5xx, connection errors) are sent again by every run.
    #[arg(long)]
    pub retry_failed: bool,

    /// Base URL of the API, with or without a trailing `/v1` [default: the provider's]
    #[arg(long, value_name = "URL", value_parser = RedactedParser(base_url))]
    pub base_url: Option<Base>,

    /// Credentials and other headers.
    #[command(flatten)]
    pub credentials: CredentialArgs,

    /// Provider: openai, anthropic, gemini, azure, groq, ... [default: detected from --base-url
    /// (`compatible` for an unknown host), else the first one in the configuration, else openai]
    ///
    /// Selects the charge rule, the header for the API key, and the path for raw bodies.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<Profile>,

    /// The limits.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// The configuration and the store.
    #[command(flatten)]
    pub state: StateArgs,

    /// Maximum number of requests in flight
    ///
    /// The limits control the rate; this option only bounds sockets and memory. It must exceed
    /// requests per second times seconds per response: 500 requests per minute of 30 s each need
    /// 250.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    pub max_in_flight: usize,

    /// Maximum number of retries after a 429, a 5xx or a connection error [default: from the
    /// configuration, else 5]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,

    /// Timeout of one attempt, from sending the request to the end of the response
    ///
    /// An attempt that times out is retried like a connection error. Time spent queued for the
    /// limits doesn't count. Raise it for models that take longer than 10 minutes.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = above_zero)]
    pub timeout: Duration,

    /// Longest wait for the limits before the run ends [default: unlimited]
    ///
    /// If every queued line would have to wait longer (a daily limit is spent, or the provider asks
    /// for a long delay), the run ends with exit code 2 and reports when to run the same command
    /// again to continue. No line fails.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub max_wait: Option<Duration>,

    /// Priority of the requests in a queue: interactive, normal, batch, or a number from -128 to 127
    ///
    /// It orders requests of a limiter that other programs use too: those of a paceline proxy. Each
    /// request has the header `x-paceline-priority` with it, which a proxy reads that has
    /// `serve: {priority_header: x-paceline-priority}` and never forwards. The requests of one run
    /// all have the same priority. Without the option, `waiting.bands` of the configuration applies.
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true)]
    pub priority: Option<Priority>,

    /// Longest outage of the server before the run ends
    ///
    /// After 5 consecutive failures (no connection, 5xx, broken connections) the requests of a model
    /// pause, and a single one tests the server after 1 s, 2 s, 4 s and so on, up to every 30 s, until
    /// it responds. No line fails during an outage. If the outage of all models with requests lasts
    /// longer than this, the run ends with exit code 2; run the same command again to continue.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    pub give_up_after: Duration,

    /// Sort the results into input order when the run ends
    ///
    /// Until then they are in order of completion, so that a kill loses none.
    #[arg(long)]
    pub ordered: bool,

    /// Path for raw bodies and for lines without a `url` [default: the provider's, e.g.
    /// /v1/chat/completions or /v1/messages]
    ///
    /// `{model}` is replaced by the model named in the body. The default for Gemini is
    /// /v1beta/models/{model}:generateContent.
    #[arg(long, value_name = "PATH", value_parser = endpoint)]
    pub endpoint: Option<String>,

    /// Estimate tokens and duration; send nothing and write no files
    #[arg(long)]
    pub dry_run: bool,

    /// Send to a built-in simulated provider with the same limits; needs no API key
    #[arg(long, conflicts_with = "base_url")]
    pub simulate: bool,

    /// Seed of the simulated provider
    #[arg(long, value_name = "N", default_value_t = 1, hide = true, requires = "simulate")]
    pub simulate_seed: u64,

    /// Also write the report to a JSON file
    #[arg(long, value_name = "FILE.json")]
    pub report: Option<PathBuf>,

    /// Print only the report, without progress and notices
    #[arg(short, long)]
    pub quiet: bool,
}

impl BatchArgs {
    /// Returns the options for resuming.
    pub(super) fn resume(&self) -> Resume {
        Resume { changed: self.changed, retry_failed: self.retry_failed }
    }

    /// Returns the limits of the simulated provider: those given, else defaults that slow down a
    /// small file.
    pub(super) fn simulated_limits(&self) -> LimitArgs {
        let LimitArgs { rpm, tpm, rpd, algorithm } = self.limits;
        let default = |amount| self.limits.is_empty().then_some(amount);
        LimitArgs { rpm: rpm.or(default(500)), tpm: tpm.or(default(30_000)), rpd, algorithm }
    }

    /// Returns the configuration of the run: limits of the arguments replace its quotas, and a trial
    /// run shares no limits.
    pub(super) fn configured(&self, config: &Config, profile: Profile) -> Config {
        let mut config = configured(config.clone(), profile);
        if self.simulate {
            (config.cluster, config.bus) = (None, None);
        }
        if !self.limits.is_empty() {
            config.quotas.clear();
        }
        config
    }

    /// Checks that no file is used twice: a report must not replace the results.
    ///
    /// # Errors
    /// [`SameFile`] with the two arguments. The output and the errors may be one file.
    pub fn check_files(&self) -> Result<(), SameFile> {
        let files = [
            ("IN.jsonl", Some(&self.input)),
            ("--output", Some(&self.output)),
            ("--errors", self.errors.as_ref()),
            ("--report", self.report.as_ref()),
        ];
        for (index, (first, one)) in files.iter().enumerate() {
            for (second, other) in &files[index + 1..] {
                let results = (*first, *second) == ("--output", "--errors");
                if let (Some(one), Some(other)) = (one, other)
                    && !results
                    && same(one, other)
                {
                    return Err(SameFile { first, second, path: other.to_path_buf() });
                }
            }
        }
        Ok(())
    }
}

/// One file is used for two purposes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SameFile {
    /// The first argument.
    pub first: &'static str,
    /// The second argument.
    pub second: &'static str,
    /// The file.
    pub path: PathBuf,
}

impl fmt::Display for SameFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, path } = self;
        write!(f, "{first} and {second} are the same file, {}; use two files", path.display())
    }
}

impl std::error::Error for SameFile {}

/// Compares two paths, resolved as far as they exist.
fn same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => std::path::absolute(one).ok() == std::path::absolute(other).ok(),
    }
}

pub(super) fn base_url(text: &str) -> Result<Base, String> {
    text.parse().map_err(|error: InvalidBase| error.to_string())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

pub(super) fn above_zero(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("must be longer than 0s".to_owned()),
        length => Ok(length),
    }
}

fn endpoint(text: &str) -> Result<String, String> {
    match text.parse::<http::uri::PathAndQuery>() {
        Ok(_) if text.starts_with('/') => Ok(text.to_owned()),
        _ => Err("must be an absolute path, such as /v1/chat/completions".to_owned()),
    }
}

pub(super) const ABOUT: &str = "\
Send a file of requests as fast as the limits allow.

Each line of the input is one request: an OpenAI Batch line (custom_id, method, url, body), an \
Anthropic Message Batches line (custom_id, params), a Gemini Batch line (key, request), or a raw \
request body. The output holds one OpenAI Batch result line per request. Requests queue in order \
and go out as soon as the limits allow; each reservation is then corrected to the actual usage.

Resume: run the same command again after a crash, a kill or Ctrl-C. Finished requests are not \
sent again, permanent failures are kept (--retry-failed sends them again), and transient failures \
are retried. If input lines have changed since they were answered, the run lists them and sends \
nothing; --changed resend sends them again. Input from a pipe is compared while it is read: the \
first changed line stops the run.

Failures: transient failures (429, 5xx, broken connections) are retried. A 200 whose body is \
empty, HTML, truncated, `null`, `{}` or an error is retried like a 5xx; if it fails for good, its \
result line says why. During an outage of the server the requests of its models wait.

Provider and API key: the provider is that of --provider, else that of --base-url (`compatible` \
for an unknown host: an OpenAI-compatible server that charges the actual usage or OpenAI's \
charge, whichever is larger), else the first one in the configuration, else OpenAI. The API key \
is read from the provider's environment variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, AZURE_OPENAI_API_KEY, GROQ_API_KEY, \
...) and sent in the provider's header. A custom provider in the configuration (`like`) has a \
variable named after it: MY_GATEWAY_API_KEY for my-gateway. If --base-url is not a host of the \
provider and --provider is not given, no key is sent unless --api-key-env names one. Bedrock \
uses an API key (AWS_BEARER_TOKEN_BEDROCK); requests are not signed. Vertex uses an access \
token.

Limits: --rpm, --tpm and --rpd apply to each model. Without them the quotas of the configuration \
apply; changes to the file take effect within a second, and an invalid file is ignored. A model \
with neither follows the limits stated in its responses. Of the configuration, a batch uses \
providers, quotas, unknown_key, reduction, retry, margin, share, store, bus and cluster.

Shared limits: with `cluster` in the configuration, batches on several machines share the limits \
of one account; the report shows this run's part. With `bus`, a 429 received by one of them \
pauses the others too. A trial run (--simulate) uses neither.

State: with a store (--store, or `store` in the configuration) usage is kept across runs and \
shared with other programs, so that a spent daily limit stays spent. Without one, every run \
starts fresh. A run that has to wait an hour or longer for a limit reports how long.";

const EXAMPLES: &str = "\
Examples:
  Try it without an API key, against the simulated provider:
    paceline batch in.jsonl -o trial.jsonl --simulate

  Send to OpenAI within your limits:
    OPENAI_API_KEY=... paceline batch in.jsonl -o out.jsonl --rpm 500 --tpm 30000 --rpd 10000

  Send to Anthropic (Message Batches lines or bodies of /v1/messages):
    ANTHROPIC_API_KEY=... paceline batch in.jsonl -o out.jsonl --provider anthropic

  Send to an Azure deployment:
    AZURE_OPENAI_API_KEY=... paceline batch in.jsonl -o out.jsonl \\
      --base-url https://RESOURCE.openai.azure.com

  Send raw embedding requests to your own server, with failures in a separate file:
    paceline batch in.jsonl -o out.jsonl --errors failed.jsonl \\
      --base-url http://127.0.0.1:8000/v1 --endpoint /v1/embeddings --rpm 6000

  Keep a daily limit across runs:
    paceline batch in.jsonl -o out.jsonl --rpd 10000 --store state.db

  Take provider, limits and store from a configuration:
    paceline batch in.jsonl -o out.jsonl --config paceline.yaml

  Estimate tokens and duration without sending anything:
    paceline batch in.jsonl -o out.jsonl --rpm 500 --tpm 30000 --dry-run

Exit codes:
  0    all requests succeeded
  1    some requests failed, in this run or an earlier one
  2    wrong arguments, unusable files, changed input lines, or a run that had to stop (401, no
       credit left, a wait longer than --max-wait, an outage longer than --give-up-after)
  130  interrupted by Ctrl-C; run the same command again to continue";
