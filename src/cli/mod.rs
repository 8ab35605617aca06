//! The `tollgate` command: its arguments, and what each subcommand composes.
//!
//! What can be checked about a value by itself is checked where it is read; what comes out of here
//! is valid. Keys are never arguments: they are read from the environment.
//!
//! ```
//! use clap::Parser;
//! use tollgate::cli::{Cli, Command};
//!
//! let cli = Cli::try_parse_from(["tollgate", "batch", "in.jsonl", "-o", "out.jsonl", "--rpm", "500"]);
//! let Ok(Cli { command: Command::Batch(batch) }) = cli else { panic!("valid arguments") };
//! assert_eq!(batch.limits.rpm, Some(500));
//! ```

mod batch;
mod exit;
mod explain;
mod limits;
mod run;
mod simulate;
mod unechoed;

use clap::{Parser, Subcommand};

pub use batch::{BatchArgs, SameFile};
pub use exit::Exit;
pub use explain::ExplainArgs;
pub use limits::{AlgorithmName, LimitArgs};
pub use run::run;
pub use simulate::{ChargeRule, InvalidLatency, Latency, SimulateArgs};

/// Keeps programs inside the limits of LLM APIs.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the command can do.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Send a file of requests, as fast as the limits allow and no faster.
    Batch(Box<BatchArgs>),
    /// Show what recorded traffic would have been charged, and what its answers said.
    Explain(ExplainArgs),
    /// Run a provider that enforces its limits, to try things against.
    Simulate(SimulateArgs),
}
