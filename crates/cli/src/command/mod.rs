//! The `tollgate` command: its arguments, and what each subcommand composes.
//!
//! What can be checked about a value by itself is checked where it is read; what comes out of here
//! is valid. Keys are read from the environment; a value of `--header` is shown nowhere.
//!
//! ```
//! use clap::Parser;
//! use tollgate_cli::command::{Cli, Command};
//!
//! let cli = Cli::try_parse_from(["tollgate", "batch", "in.jsonl", "-o", "out.jsonl", "--rpm", "500"]);
//! let Ok(Cli { command: Command::Batch(batch) }) = cli else { panic!("valid arguments") };
//! assert_eq!(batch.limits.rpm, Some(500));
//! ```

mod batch;
mod batch_run;
mod bench;
mod check;
mod completions;
mod config;
mod count;
mod credentials;
mod exit;
mod explain;
mod kept;
mod limits;
mod migrate;
mod output;
mod paths;
mod place;
mod reset;
mod run;
mod serve;
mod show;
mod signal;
mod simulate;
mod state_args;
mod stored;
mod unechoed;

use clap::{Parser, Subcommand};

pub use batch::{BatchArgs, SameFile};
pub use bench::{BenchArgs, Template, Url};
pub use check::CheckArgs;
pub use completions::CompletionsArgs;
pub use config::{ConfigAction, ConfigCommand};
pub use count::{CountArgs, CountBy};
pub use credentials::{CredentialArgs, Header};

use exit::AFTER;
pub use exit::Exit;
pub use explain::ExplainArgs;
pub use limits::{AlgorithmName, LimitArgs};
pub use migrate::MigrateArgs;
pub use reset::ResetArgs;
pub use run::{main, run};
pub use serve::ServeArgs;
pub use show::ShowArgs;
pub use simulate::{ChargeRule, InvalidLatency, Latency, SimulateArgs};
pub use state_args::{ConfigArgs, StateArgs};

/// Keep programs within the rate limits of LLM APIs.
#[derive(Debug, Parser)]
#[command(
    name = "tollgate",
    version,
    propagate_version = true,
    max_term_width = 100,
    help_template = TEMPLATE,
    after_help = "Run `tollgate COMMAND --help` for details and examples.",
    after_long_help = AFTER
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the command can do.
///
/// The description of a variant would replace the long one of its arguments: both stand here.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Show current usage of each limit.
    #[command(long_about = show::ABOUT)]
    Show(ShowArgs),
    /// Check whether a request would be allowed now, without consuming quota.
    #[command(long_about = check::ABOUT)]
    Check(CheckArgs),
    /// Reset usage counters.
    #[command(long_about = reset::ABOUT)]
    Reset(ResetArgs),
    /// Copy state from one store to another.
    #[command(long_about = migrate::ABOUT)]
    Migrate(MigrateArgs),
    /// Send a file of requests as fast as the limits allow.
    #[command(long_about = batch::ABOUT)]
    Batch(Box<BatchArgs>),
    /// Show what recorded traffic would have been charged.
    #[command(long_about = explain::ABOUT)]
    Explain(ExplainArgs),
    /// Count the tokens of a text.
    #[command(long_about = count::ABOUT)]
    Count(CountArgs),
    /// Check, show and document the configuration.
    #[command(long_about = config::ABOUT)]
    Config(ConfigCommand),
    /// Generate a completion script for a shell.
    #[command(long_about = completions::ABOUT)]
    Completions(CompletionsArgs),
    /// Run the rate-limit server and LLM proxy.
    #[command(long_about = serve::ABOUT)]
    Serve(Box<ServeArgs>),
    /// Run a simulated LLM provider with rate limits.
    #[command(long_about = simulate::ABOUT)]
    Simulate(SimulateArgs),
    /// Measure the throughput and latency of a running server.
    #[command(long_about = bench::ABOUT)]
    Bench(Box<BenchArgs>),
}

/// Clap lists commands in one row; a test holds these against it.
const TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

Limits:
  show         Show current usage of each limit
  check        Check whether a request would be allowed now, without consuming quota
  reset        Reset usage counters
  migrate      Copy state from one store to another

Requests:
  serve        Run the rate-limit server and LLM proxy
  batch        Send a file of requests as fast as the limits allow
  count        Count the tokens of a text
  explain      Show what recorded traffic would have been charged
  simulate     Run a simulated LLM provider with rate limits
  bench        Measure the throughput and latency of a running server

Setup:
  config       Check, show and document the configuration
  completions  Generate a completion script for a shell
  help         Print this message or the help of a command

Options:
{options}{after-help}
";
