use std::path::PathBuf;

use clap::Args;

use super::Exit;
use super::output::Output;
use tollgate::limiter::{Clock, SystemClock};
use tollgate::store::{self, Options};

/// The arguments of `tollgate migrate`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct MigrateArgs {
    /// The state to take over: tollgate's or go-ratelimit's, YAML or SQLite
    #[arg(value_name = "SRC")]
    pub source: PathBuf,

    /// Where it goes: a .yaml or .yml, or a .db, .sqlite or .sqlite3; made if it isn't there
    #[arg(value_name = "DST")]
    pub destination: PathBuf,

    /// Write nothing, and say what would be written
    #[arg(long)]
    pub dry_run: bool,

    /// Print the summary as one JSON document in one line
    #[arg(long)]
    pub json: bool,
}

impl MigrateArgs {
    /// # Errors
    /// Says which of the two files can't be read or written, and why. The destination is as it was.
    pub(super) fn run(&self, out: &mut Output<'_>) -> Result<Exit, String> {
        let clock = SystemClock::new();
        let options = Options { dry_run: self.dry_run };
        let (source, destination) = (&self.source, &self.destination);
        let boot = clock.boot();
        let summary = store::migrate(source, destination, options, clock.now(), boot);
        let summary = summary.map_err(|error| error.to_string())?;
        match self.json {
            true => out.json(&summary)?,
            false => out.line(&summary)?,
        }
        Ok(Exit::Success)
    }
}

pub(super) const ABOUT: &str = "\
Copy state from one store to another.

Reads tollgate's YAML and SQLite files, and go-ratelimit's (ratelimits.yaml, its SQLite database), \
whatever their names; writes tollgate's, in either format. The source stays as it is. Nothing that \
the destination keeps is lost, and the same command a second time changes nothing. A quota of the same \
name gives way to the source's, and is named in the summary.";

const EXAMPLES: &str = "\
Examples:
  See what go-ratelimit's file holds:
    tollgate migrate ratelimits.yaml state.db --dry-run

  Take it over:
    tollgate migrate ratelimits.yaml ~/.local/state/tollgate/state.db

  Look at a database as text:
    tollgate migrate state.db state.yaml

Exit codes:
  0    taken over; with --dry-run, it would be
  2    wrong arguments, or a file that can't be read or written; the destination is as it was";
