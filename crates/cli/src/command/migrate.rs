use std::path::PathBuf;

use clap::Args;

use super::Exit;
use super::stdout::Stdout;
use paceline::limiter::{Clock, SystemClock};
use paceline::store::{self, MigrateOptions};

/// The arguments of `paceline migrate`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct MigrateArgs {
    /// Store to read: YAML or SQLite, of paceline or go-ratelimit
    #[arg(value_name = "SRC")]
    pub source: PathBuf,

    /// Store to write: a .yaml or .yml, or a .db, .sqlite or .sqlite3 file; created if missing
    #[arg(value_name = "DST")]
    pub destination: PathBuf,

    /// Print the summary without writing anything
    #[arg(long)]
    pub dry_run: bool,

    /// Print the summary as one JSON document on one line
    #[arg(long)]
    pub json: bool,
}

impl MigrateArgs {
    /// Runs the command and prints its output.
    ///
    /// # Errors
    /// Returns an error that names the unusable file. The destination is unchanged.
    pub(super) fn run(&self, out: &mut Stdout<'_>) -> Result<Exit, String> {
        let clock = SystemClock::new();
        let options = MigrateOptions { dry_run: self.dry_run };
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

Reads the YAML and SQLite files of paceline and of go-ratelimit (ratelimits.yaml, its SQLite \
database), regardless of their names; writes a YAML or SQLite store of paceline. The source is not \
changed. Existing state in the destination is kept, and running the command again changes \
nothing. If both have a quota of the same name, the source's replaces it and the summary lists \
it.";

const EXAMPLES: &str = "\
Examples:
  Show the content of a go-ratelimit file:
    paceline migrate ratelimits.yaml state.db --dry-run

  Import it:
    paceline migrate ratelimits.yaml ~/.local/state/paceline/state.db

  Convert a database to text:
    paceline migrate state.db state.yaml

Exit codes:
  0    the state was copied (with --dry-run: it can be copied)
  2    wrong arguments, or an unreadable or unwritable file; the destination is unchanged";
