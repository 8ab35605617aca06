//! `paceline config`: checks and shows the configuration.

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::paths::Paths;
use super::stdout::Stdout;
use super::{ConfigArgs, Exit};
use crate::terminal::{notify, printable};
use paceline::limiter::{Clock, SystemClock};
use paceline::provider::{Profile, QuotaTable};
use paceline_config::{self as config, ConfigError, LoadOptions, Origin, Problem};

/// The arguments of `paceline config`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ConfigCommand {
    /// The action.
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// The subcommands of `paceline config`.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum ConfigAction {
    /// Check a file and report all errors with line and column, without the environment.
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print one JSON document on one line
        #[arg(long)]
        json: bool,
    },
    /// Show every effective value and its source.
    Show {
        /// The configuration file.
        #[command(flatten)]
        config: ConfigArgs,
        /// Print one JSON document on one line
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the file, for completion in editors.
    Schema,
    /// List the built-in providers with their default limits, dates and sources.
    Providers {
        /// Print one JSON document on one line
        #[arg(long)]
        json: bool,
    },
    /// Print the path of the configuration file.
    Path {
        /// The configuration file.
        #[command(flatten)]
        config: ConfigArgs,
    },
}

impl ConfigCommand {
    /// Runs the command and prints its output.
    ///
    /// # Errors
    /// Returns the errors of the configuration, or an error of standard output.
    pub(super) fn run(&self, out: &mut Stdout<'_>) -> Result<Exit, String> {
        match &self.action {
            ConfigAction::Check { file, json } => return check(file, *json, out),
            ConfigAction::Path { config } => return path(config, out),
            ConfigAction::Show { config, json: true } => out.json(&config.load()?.to_json())?,
            ConfigAction::Show { config, json: false } => {
                out.line(&config.load()?.show().trim_end())?;
            }
            ConfigAction::Schema => {
                out.line(&format_args!("{:#}", config::schema_with(&paceline_serve::sections())))?
            }
            ConfigAction::Providers { json } => {
                let table = QuotaTable::of(Profile::all()).with_ages(SystemClock::new().now());
                if *json {
                    out.json(&table)?
                } else {
                    out.line(&table)?
                }
                if let Some(warning) = table.warning() {
                    notify(&warning);
                }
            }
        }
        Ok(Exit::Success)
    }
}

fn check(file: &Path, as_json: bool, out: &mut Stdout<'_>) -> Result<Exit, String> {
    let options = LoadOptions::new().with_path(file).with_sections(paceline_serve::sections());
    let checked = config::load(&options);
    if as_json {
        let problems = checked.as_ref().err().map_or(&[][..], |error| &error.problems);
        let problems: Vec<_> = problems.iter().map(ProblemOutput::of).collect();
        let file = file.display().to_string();
        out.json(&json!({"file": file, "ok": problems.is_empty(), "problems": problems}))?;
    }
    match checked {
        Ok(_) if as_json => Ok(Exit::Success),
        Ok(loaded) => {
            let (quotas, providers) = (loaded.config.quotas.len(), loaded.config.providers.len());
            let file = printable(&file.display().to_string());
            out.line(&format_args!("{file}: valid (providers: {providers}, quotas: {quotas})"))?;
            Ok(Exit::Success)
        }
        Err(ConfigError { problems, .. }) => {
            // One line each, in the format of compilers, which editors can jump to.
            let printed = problems.iter().filter(|_| !as_json);
            printed.for_each(|problem| {
                drop(writeln!(stderr(), "{}", printable(&problem.to_string())))
            });
            let (count, file) = (problems.len(), file.display());
            Err(format!("{file}: {count} {}", if count == 1 { "error" } else { "errors" }))
        }
    }
}

fn path(args: &ConfigArgs, out: &mut Stdout<'_>) -> Result<Exit, String> {
    let path = match args.options().file() {
        Some(path) => path,
        None => Paths::from_env().config().map_err(|error| error.to_string())?,
    };
    out.line(&path.display())?;
    if path.exists() {
        return Ok(Exit::Success);
    }
    notify(&"the file does not exist; the defaults apply");
    Ok(Exit::Missing)
}

/// A problem as JSON. Field names are stable.
#[derive(Debug, Serialize)]
struct ProblemOutput {
    origin: String,
    line: Option<usize>,
    column: Option<usize>,
    path: String,
    message: String,
}

impl ProblemOutput {
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
Check, show and document the configuration.

The library and all commands share one YAML file. Sources in increasing precedence: provider \
profiles, the file, environment variables (PACELINE_STORE__FLUSH=2s), command-line options. \
Passwords are never shown.";

const EXAMPLES: &str = "\
Examples:
  Report all errors in a file, with line and column:
    paceline config check paceline.yaml

  Show every effective value and its source:
    PACELINE_STORE__FLUSH=2s paceline config show --config paceline.yaml

  Enable completion in editors that support JSON Schema (with the line
  `# yaml-language-server: $schema=paceline.json` at the top of the file):
    paceline config schema > paceline.json

  A minimal file:
    providers: [openai]
    quotas:
      gpt-4o: {rpm: 500, tpm: 30000, rpd: 10000}
    store: {sqlite: state.db}

Files:
  --config, else $PACELINE_CONFIG, else $XDG_CONFIG_HOME/paceline/config.yaml if it exists

Exit codes:
  0    success; the file is valid
  1    `path`: the file does not exist
  2    wrong arguments, or an invalid configuration";
