//! `tollgate config`: the configuration, checked and shown.

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::output::Output;
use super::paths::Paths;
use super::{ConfigArgs, Exit};
use crate::terminal::{printable, say};
use tollgate::config::{self, ConfigError, LoadOptions, Origin, Problem};
use tollgate::provider::{Profile, QuotaTable};

/// The arguments of `tollgate config`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ConfigCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// What is done with the configuration.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum ConfigAction {
    /// Say whether a file is right, and all that is wrong with it, without the environment.
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print one JSON document in one line
        #[arg(long)]
        json: bool,
    },
    /// Show every value in effect, and where it was said.
    Show {
        /// Which configuration.
        #[command(flatten)]
        config: ConfigArgs,
        /// Print one JSON document in one line
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the file, by which editors complete it.
    Schema,
    /// Show the providers that are built in: their default limits, of which month, and their sources.
    Providers {
        /// Print one JSON document in one line
        #[arg(long)]
        json: bool,
    },
    /// Print the path of the file that counts.
    Path {
        /// Which configuration.
        #[command(flatten)]
        config: ConfigArgs,
    },
}

impl ConfigCommand {
    /// # Errors
    /// Says what is wrong with the configuration, or that nothing can be written.
    pub(super) fn run(&self, out: &mut Output<'_>) -> Result<Exit, String> {
        match &self.action {
            ConfigAction::Check { file, json } => return check(file, *json, out),
            ConfigAction::Path { config } => return path(config, out),
            ConfigAction::Show { config, json: true } => out.json(&config.load()?.to_json())?,
            ConfigAction::Show { config, json: false } => {
                out.line(&config.load()?.show().trim_end())?;
            }
            ConfigAction::Schema => {
                out.line(&format_args!("{:#}", config::schema_with(&tollgate_serve::sections())))?
            }
            ConfigAction::Providers { json } => {
                let table = QuotaTable::of(Profile::all());
                if *json { out.json(&table)? } else { out.line(&table)? }
            }
        }
        Ok(Exit::Success)
    }
}

fn check(file: &Path, as_json: bool, out: &mut Output<'_>) -> Result<Exit, String> {
    let options = LoadOptions::new().with_path(file).with_sections(tollgate_serve::sections());
    let checked = config::load(&options);
    if as_json {
        let problems = checked.as_ref().err().map_or(&[][..], |error| &error.problems);
        let problems: Vec<_> = problems.iter().map(Wrong::of).collect();
        let file = file.display().to_string();
        out.json(&json!({"file": file, "ok": problems.is_empty(), "problems": problems}))?;
    }
    match checked {
        Ok(_) if as_json => Ok(Exit::Success),
        Ok(loaded) => {
            let (quotas, providers) = (loaded.config.quotas.len(), loaded.config.providers.len());
            let file = printable(&file.display().to_string());
            out.line(&format_args!("{file}: right (providers: {providers}, quotas: {quotas})"))?;
            Ok(Exit::Success)
        }
        Err(ConfigError { problems, .. }) => {
            // A line each, as compilers have it: editors jump to the place.
            let told = problems.iter().filter(|_| !as_json);
            told.for_each(|problem| {
                drop(writeln!(stderr(), "{}", printable(&problem.to_string())))
            });
            let (count, file) = (problems.len(), file.display());
            Err(format!("{file}: {count} {}", if count == 1 { "problem" } else { "problems" }))
        }
    }
}

fn path(args: &ConfigArgs, out: &mut Output<'_>) -> Result<Exit, String> {
    let path = match args.options().file() {
        Some(path) => path,
        None => Paths::from_env().config().map_err(|error| error.to_string())?,
    };
    out.line(&path.display())?;
    if path.exists() {
        return Ok(Exit::Success);
    }
    say(&"that file isn't there, so the defaults count");
    Ok(Exit::Missing)
}

/// A problem, told. Names are a contract.
#[derive(Debug, Serialize)]
struct Wrong {
    origin: String,
    line: Option<usize>,
    column: Option<usize>,
    path: String,
    message: String,
}

impl Wrong {
    fn of(problem: &Problem) -> Self {
        let position = Origin::position(&problem.origin);
        Self {
            origin: problem.origin.to_string(),
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            path: problem.path.clone(),
            message: problem.message.clone(),
        }
    }
}

pub(super) const ABOUT: &str = "\
Check, show and describe the configuration.

One file of YAML for the library and every command. What counts, each over what stands before it: the \
profiles of the providers, the file, environment variables (TOLLGATE_STORE__FLUSH=2s), options of a \
command. Passwords in it are never shown.";

const EXAMPLES: &str = "\
Examples:
  All that is wrong with a file, with line and column:
    tollgate config check tollgate.yaml

  Every value in effect and where it was said:
    TOLLGATE_STORE__FLUSH=2s tollgate config show --config tollgate.yaml

  Completion in editors that take a JSON Schema (and `# yaml-language-server: $schema=tollgate.json`
  as the first line of the file):
    tollgate config schema > tollgate.json

  A file to begin with:
    providers: [openai]
    quotas:
      gpt-4o: {rpm: 500, tpm: 30000, rpd: 10000}
    store: {sqlite: state.db}

Files:
  --config, else $TOLLGATE_CONFIG, else $XDG_CONFIG_HOME/tollgate/config.yaml if it is there

Exit codes:
  0    done; the file is right
  1    `path`: that file isn't there
  2    wrong arguments, or a configuration that can't be used";
