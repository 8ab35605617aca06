//! The arguments and subcommands of `paceline`.
//!
//! Arguments are validated while they are parsed. API keys are read from the environment; values of
//! `--header` are never shown.
//!
//! ```
//! use clap::Parser;
//! use paceline_cli::command::{Cli, Command};
//!
//! let cli = Cli::try_parse_from(["paceline", "batch", "in.jsonl", "-o", "out.jsonl", "--rpm", "500"]);
//! let Ok(Cli { command: Command::Batch(batch) }) = cli else { panic!("valid arguments") };
//! assert_eq!(batch.limits.rpm, Some(500));
//! ```

mod account_limits;
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
mod limits;
mod migrate;
mod paths;
mod redacted_parser;
mod reset;
mod run;
mod run_services;
mod serve;
mod shared_usage;
mod show;
mod signal;
mod simulate;
mod state_args;
mod state_file;
mod stdout;
mod stored_state;

use clap::{Parser, Subcommand};

pub use batch::{BatchArgs, SameFile};
pub use bench::{BenchArgs, PathTemplate, Url};
pub use check::CheckArgs;
pub use completions::CompletionsArgs;
pub use config::{ConfigAction, ConfigCommand};
pub use count::{CountArgs, CountBy};
pub use credentials::{CredentialArgs, Header};

use exit::AFTER_HELP;
pub use exit::Exit;
pub use explain::ExplainArgs;
pub use limits::{AlgorithmName, LimitArgs};
pub use migrate::MigrateArgs;
pub use reset::ResetArgs;
pub use run::{main, run};
pub use serve::ServeArgs;
pub use show::ShowArgs;
pub use simulate::{
    ChargeRuleName, ConflictingLimits, HeadersForm, InvalidLatency, Latency, RefusalForm,
    SimulateArgs, Storm,
};
pub use state_args::{ConfigArgs, StateArgs};

/// Keep programs within the rate limits of LLM APIs.
#[derive(Debug, Parser)]
#[command(
    name = "paceline",
    version,
    propagate_version = true,
    max_term_width = 100,
    help_template = TEMPLATE,
    after_help = "Run `paceline COMMAND --help` for details and examples.",
    after_long_help = AFTER_HELP
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
///
/// A variant's doc comment replaces the long description of its arguments, so both are set here.
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
    Simulate(Box<SimulateArgs>),
    /// Measure the throughput and latency of a running server.
    #[command(long_about = bench::ABOUT)]
    Bench(Box<BenchArgs>),
}

/// Lists the commands in groups, which clap can't; a test compares it with the commands.
const TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

Requests:
  batch        Send a file of requests as fast as the limits allow
  serve        Run the rate-limit server and LLM proxy
  simulate     Run a simulated LLM provider with rate limits
  count        Count the tokens of a text
  explain      Show what recorded traffic would have been charged
  bench        Measure the throughput and latency of a running server

Limits:
  show         Show current usage of each limit
  check        Check whether a request would be allowed now, without consuming quota
  reset        Reset usage counters
  migrate      Copy state from one store to another

Setup:
  config       Check, show and document the configuration
  completions  Generate a completion script for a shell
  help         Print this message or the help of a command

Options:
{options}{after-help}
";
