use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::unechoed::Unechoed;
use super::{CredentialArgs, LimitArgs, StateArgs};
use crate::batch::target::{Base, InvalidBase};
use crate::batch::{OnChange, Resume};
use tollgate::config::section::length_of_time;
use tollgate::provider::Profile;

/// The arguments of `tollgate batch`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BatchArgs {
    /// Requests: Batch lines of OpenAI, Anthropic or Gemini, or raw request bodies, one per line
    #[arg(value_name = "IN.jsonl")]
    pub input: PathBuf,

    /// Where results go, as OpenAI Batch result lines; an existing file is resumed
    #[arg(short, long, value_name = "OUT.jsonl")]
    pub output: PathBuf,

    /// Where failures go [default: the output, with `error` set]
    #[arg(long, value_name = "FILE")]
    pub errors: Option<PathBuf>,

    /// What to do if lines have changed since an earlier run answered them
    ///
    /// Each result holds a hash of its request: of the path, and of the body byte for byte. A line
    /// that has the custom_id of a result (or its line number, where it has none) and another hash has
    /// changed. Results of earlier versions have no hash; their lines are taken as unchanged.
    #[arg(long, value_enum, value_name = "ACTION", default_value_t)]
    pub changed: OnChange,

    /// Send lines again that failed for good in an earlier run; their results are replaced
    ///
    /// What failed in passing (429, 5xx, connections) is sent again by every run.
    #[arg(long)]
    pub retry_failed: bool,

    /// The API to call, with `/v1` at its end or without [default: the provider's]
    #[arg(long, value_name = "URL", value_parser = Unechoed(base_url))]
    pub base_url: Option<Base>,

    /// The key of requests, and their other headers.
    #[command(flatten)]
    pub credentials: CredentialArgs,

    /// The provider: openai, anthropic, gemini, azure, groq, .. [default: told by the base URL, else the
    /// first of the configuration, else openai]
    ///
    /// It says how requests are charged, which header carries the key, and where raw bodies go.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<Profile>,

    /// The limits to keep.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Which limits, and where their state is kept.
    #[command(flatten)]
    pub state: StateArgs,

    /// How many requests may be under way at a time
    ///
    /// The limits decide how fast requests are sent; this only bounds sockets and memory. It has to
    /// be above requests per second times seconds per answer: 500 per minute that take 30 s each
    /// need 250.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    pub max_in_flight: usize,

    /// How often a request is sent again after a 429, a 5xx or a broken connection [default: as the
    /// configuration says, else 5]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,

    /// How long a try may take, from its sending to the end of its answer
    ///
    /// A try that takes longer fails, and is retried like a broken connection. Waiting for the limits
    /// doesn't count. Raise it for models that think longer than 10 minutes.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = above_zero)]
    pub timeout: Duration,

    /// How long to wait for the limits before the run ends [default: as long as it takes]
    ///
    /// When every line that waits would have to wait longer than this (a daily limit is used up, the
    /// provider asks to wait for long), the run ends with exit code 2 and tells when to run the same
    /// command again, which goes on where it stopped. Nothing fails by it.
    #[arg(long, value_name = "DURATION", value_parser = length_of_time)]
    pub max_wait: Option<Duration>,

    /// How long to wait for a server that has an outage before the run ends
    ///
    /// After 5 failures in a row (no connection, 5xx, broken connections) the job pauses: one request at
    /// a time is sent, after 1 s, 2 s, 4 s and so on up to every 30 s, until the server answers again.
    /// No line fails by an outage. When it lasts longer than this the run ends with exit code 2; the same
    /// command goes on where it stopped.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = length_of_time)]
    pub give_up_after: Duration,

    /// Put the results in the order of the input when the run ends
    ///
    /// Until then they stand in the order they came, so that a kill loses none.
    #[arg(long)]
    pub ordered: bool,

    /// Where raw bodies, and lines without a `url`, are sent [default: the provider's, such as
    /// /v1/chat/completions or /v1/messages]
    ///
    /// `{model}` in it stands for the model that the body names. Gemini's default is
    /// /v1beta/models/{model}:generateContent.
    #[arg(long, value_name = "PATH", value_parser = endpoint)]
    pub endpoint: Option<String>,

    /// Read and estimate everything, send nothing, touch no file
    #[arg(long)]
    pub dry_run: bool,

    /// Send to the built-in provider, which enforces the same limits: needs no key
    #[arg(long, conflicts_with = "base_url")]
    pub simulate: bool,

    /// Seed of the built-in provider
    #[arg(long, value_name = "N", default_value_t = 1, hide = true, requires = "simulate")]
    pub simulate_seed: u64,

    /// Write the report as JSON too
    #[arg(long, value_name = "FILE.json")]
    pub report: Option<PathBuf>,

    /// Show no progress, only the report
    #[arg(short, long)]
    pub quiet: bool,
}

impl BatchArgs {
    /// How the run goes on with an output of earlier ones.
    pub(super) fn resume(&self) -> Resume {
        Resume { changed: self.changed, retry_failed: self.retry_failed }
    }

    /// What the built-in provider enforces: the limits given, or else some that make a small file
    /// take a while.
    pub(super) fn simulated_limits(&self) -> LimitArgs {
        let LimitArgs { rpm, tpm, rpd, algorithm } = self.limits;
        let default = |amount| self.limits.is_empty().then_some(amount);
        LimitArgs { rpm: rpm.or(default(500)), tpm: tpm.or(default(30_000)), rpd, algorithm }
    }

    /// Checks that no file is named for two purposes: a report must not replace the results.
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

/// One file is named for two purposes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SameFile {
    /// One argument that names it.
    pub first: &'static str,
    /// The other.
    pub second: &'static str,
    /// The file.
    pub path: PathBuf,
}

impl fmt::Display for SameFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, path } = self;
        write!(f, "{first} and {second} are both {}; name two files", path.display())
    }
}

impl std::error::Error for SameFile {}

/// Compares what the names stand for, so far as they stand for anything yet.
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
        Ok(0) => Err("with 0 under way nothing is sent; give at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn above_zero(text: &str) -> Result<Duration, String> {
    match length_of_time(text)? {
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
Send a file of requests, as fast as the limits allow and no faster.

The input holds one request per line: OpenAI Batch lines (custom_id, method, url, body), Anthropic's \
(custom_id, params), Gemini's (key, request) or raw request bodies. The output holds one OpenAI Batch \
result line per request.

Run the same command again after a crash, a kill or Ctrl-C: what is finished is not sent again, what \
failed for good stays (--retry-failed sends it again), what failed in passing is tried anew. While the \
server has an outage the run pauses, and no request fails by it. If lines of the input have changed \
since they were answered, the run names them and sends nothing; --changed resend sends these lines \
again. The lines of an input that is a pipe are compared as they are read, and the first that has \
changed stops the run.

The provider is that of --provider, or of the base URL, or the first of the configuration, or OpenAI. \
Its key comes from its own environment variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, \
AZURE_OPENAI_API_KEY, GROQ_API_KEY, ..) and goes into its own header. A provider of the configuration \
that is `like` another under a name of its own has its own variable: MY_GATEWAY_API_KEY for my-gateway. A \
--base-url that is not a provider's own host, without --provider, is sent no key unless --api-key-env \
names one. Bedrock takes an API key of its own (AWS_BEARER_TOKEN_BEDROCK), requests are not signed; \
Vertex takes an access token.

A 200 whose body is empty, HTML, cut off, `null`, `{}` or an error counts as failed: the request is sent \
again like after a 5xx, then its line says why.

Limits are those of --rpm, --tpm and --rpd, for each model; without these, those of the configuration, \
which is followed while the run goes on: quotas that change in the file count within a second, and a \
file that is wrong changes nothing. A model that neither names keeps to what its responses tell. Of the \
configuration, providers, quotas, unknown_key, reduction, retry, margin, share, store, bus and cluster mean something \
here.

With `cluster` in the configuration the limits are shared: batches on several machines that name the \
same account finish as fast as one limit allows, and the report tells this run's part of it. With `bus` \
a 429 of one pauses the others too. A trial run (--simulate) takes nothing of what is shared.

With a store (--store, or `store` in the configuration) limits are kept across runs, and shared with \
other programs: a daily limit that is used up stays used up. Without one, every run starts anew. A run \
that has to wait for a limit of an hour or longer says so, and until when.";

const EXAMPLES: &str = "\
Examples:
  Try it without a key, against the built-in provider:
    tollgate batch examples/requests.jsonl -o out.jsonl --simulate --rpm 500 --tpm 200000

  Send to OpenAI within your limits:
    OPENAI_API_KEY=... tollgate batch in.jsonl -o out.jsonl --rpm 500 --tpm 30000 --rpd 10000

  Send to Anthropic, from its own batch lines or from bodies of /v1/messages:
    ANTHROPIC_API_KEY=... tollgate batch in.jsonl -o out.jsonl --provider anthropic

  Send to a deployment on Azure:
    AZURE_OPENAI_API_KEY=... tollgate batch in.jsonl -o out.jsonl \\
      --base-url https://RESOURCE.openai.azure.com

  Send raw embedding requests to a server of your own, failures apart:
    tollgate batch in.jsonl -o out.jsonl --errors failed.jsonl \\
      --base-url http://127.0.0.1:8000/v1 --endpoint /v1/embeddings --rpm 6000

  Keep a daily limit across runs:
    tollgate batch in.jsonl -o out.jsonl --rpd 10000 --store state.db

  Limits of each model, a provider and a store, as the configuration says:
    tollgate batch in.jsonl -o out.jsonl --config tollgate.yaml

  See what a run would cost and take:
    tollgate batch in.jsonl -o out.jsonl --rpm 500 --tpm 30000 --dry-run

Exit codes:
  0    all requests succeeded
  1    some requests failed, in this run or an earlier one
  2    wrong arguments, files that can't be used, lines that have changed since they were answered, or a
       run that had to stop (401, no credit left, a wait longer than --max-wait, an outage longer than
       --give-up-after)
  130  interrupted by Ctrl-C; the same command goes on where it stopped";
