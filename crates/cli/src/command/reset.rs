use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use serde::Serialize;

use super::shared_usage::SharedUsage;
use super::stdout::Stdout;
use super::stored_state::StoredState;
use super::{Exit, StateArgs};
use crate::terminal::{notify, printable};

/// The arguments of `paceline reset`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ResetArgs {
    /// The key to reset
    #[arg(value_name = "KEY", conflicts_with = "all")]
    pub key: Option<String>,

    /// Reset all keys, without asking
    #[arg(long)]
    pub all: bool,

    /// The configuration and the store.
    #[command(flatten)]
    pub state: StateArgs,

    /// Print one JSON document on one line
    #[arg(long)]
    pub json: bool,
}

impl ResetArgs {
    /// Runs the command: resets a key, or all keys.
    ///
    /// # Errors
    /// Returns an error of the state, or if no key is given.
    pub(super) async fn run(&self, out: &mut Stdout<'_>) -> Result<Exit, String> {
        let reset = async |shared: Option<&SharedUsage>| {
            self.reset(out, &StoredState::read(&self.state, shared)?).await
        };
        SharedUsage::with(&self.state.config, reset).await
    }

    async fn reset(&self, out: &mut Stdout<'_>, stored: &StoredState<'_>) -> Result<Exit, String> {
        let kept = stored.resettable();
        if let Some(key) = self.key.as_deref().filter(|key| !stored.is_resettable(key)) {
            return self.missing(key, stored, out);
        }
        if self.key.is_none() && !self.all && !confirmed(kept.len(), stored)? {
            notify(&"nothing was reset");
            return Ok(Exit::Refused);
        }
        let keys = match &self.key {
            Some(key) => vec![key.as_str()],
            None => kept.iter().map(String::as_str).collect(),
        };
        stored.refresh(&keys).await?;
        stored.reset(self.key.as_deref()).await?;
        match self.json {
            true => out.json(&ResetOutput { store: stored.path(), reset: keys })?,
            false => out.line(&summary(&keys, &stored.place()))?,
        }
        Ok(Exit::Success)
    }

    fn missing(
        &self,
        key: &str,
        stored: &StoredState<'_>,
        out: &mut Stdout<'_>,
    ) -> Result<Exit, String> {
        if self.json {
            out.json(&ResetOutput { store: stored.path(), reset: Vec::new() })?;
        }
        let (shown, path) = (printable(key), stored.place());
        let known = stored.resettable();
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let near: Vec<_> = near(key, &known).into_iter().map(printable).collect();
        match near.is_empty() {
            true => notify(&format_args!("{shown}: no such key in {path}")),
            false => notify(&format_args!(
                "{shown}: no such key in {path}; did you mean {}?",
                near.join(", ")
            )),
        }
        Ok(Exit::Missing)
    }
}

/// The JSON output. Field names are stable.
#[derive(Debug, Serialize)]
struct ResetOutput<'a> {
    store: String,
    reset: Vec<&'a str>,
}

/// Prompts for confirmation on the terminal.
fn confirmed(keys: usize, stored: &StoredState<'_>) -> Result<bool, String> {
    if !io::stdin().is_terminal() {
        return Err("KEY: missing; name a key, or reset all keys with --all".to_owned());
    }
    eprint!("Reset usage of {} in {}? [y/N] ", counted(keys), stored.place());
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| error.to_string())?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn summary(keys: &[&str], path: &str) -> String {
    match keys {
        [] => format!("no usage to reset in {path}"),
        [key] => format!("reset usage of {}", printable(key)),
        keys => format!("reset usage of {}", counted(keys.len())),
    }
}

fn counted(keys: usize) -> String {
    match keys {
        1 => "1 key".to_owned(),
        keys => format!("{keys} keys"),
    }
}

/// Returns up to three similar names, most similar first.
fn near<'a>(given: &str, names: &[&'a str]) -> Vec<&'a str> {
    let lower = given.to_lowercase();
    let likeness = |name: &&'a str| {
        let name_lower = name.to_lowercase();
        let part = name_lower.contains(&lower) || lower.contains(&name_lower);
        let likeness = strsim::jaro_winkler(&lower, &name_lower);
        (if part { 1.0 } else { likeness }, *name)
    };
    let named = names.iter().filter(|name| !lower.is_empty() && !name.trim().is_empty());
    let mut near: Vec<_> = named.map(likeness).filter(|(likeness, _)| *likeness > LIKE).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The similarity from which a name is suggested; 1 is equal.
const LIKE: f64 = 0.8;

pub(super) const ABOUT: &str = "\
Reset usage counters.

Resets the counters of KEY, or of all keys with --all; without either, asks on the terminal \
before it resets all keys. Pauses end too: after a refusal, while a server fails all requests, or \
while an account is refused. Limits are kept, and so are reservations of requests in flight. \
Running programs that share a SQLite store follow within their flush interval; a YAML store can't \
be reset while a program has it open. The usage of limits that are shared between machines \
(`cluster`) is reset in their store; --all resets the keys of the configuration and the state, so \
name others that match a glob or regular expression.";

const EXAMPLES: &str = "\
Examples:
  Reset one key:
    paceline reset gpt-4o

  Reset all keys of a project:
    paceline reset --all --store state.db

JSON:
  one document on one line: {\"store\": .., \"reset\": [the keys]}

Exit codes:
  0    the counters were reset
  1    no such key, or you declined
  2    wrong arguments, unreadable or unwritable state, or an unavailable store of shared limits";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_sorted_by_similarity() {
        let names = ["", " ", "claude-sonnet-4-5", "gpt-4o", "gpt-4o-mini", "tenant:a"];
        assert_eq!(near("gpt4o", &names), ["gpt-4o", "gpt-4o-mini"]);
        assert_eq!(near("sonnet", &names), ["claude-sonnet-4-5"]);
        assert_eq!(near("GPT-4O-2024", &names)[0], "gpt-4o");
        assert_eq!(near("mistral", &names), [""; 0]);
        assert_eq!(near("", &names), [""; 0]);
    }
}
