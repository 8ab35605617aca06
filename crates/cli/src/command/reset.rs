use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use serde::Serialize;

use super::output::Output;
use super::stored::Stored;
use super::{Exit, StateArgs};
use crate::terminal::{printable, say};

/// The arguments of `tollgate reset`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ResetArgs {
    /// The key whose usage is forgotten
    #[arg(value_name = "KEY", conflicts_with = "all")]
    pub key: Option<String>,

    /// Forget that of all keys, without asking
    #[arg(long)]
    pub all: bool,

    /// Which state.
    #[command(flatten)]
    pub state: StateArgs,

    /// Print one JSON document in one line
    #[arg(long)]
    pub json: bool,
}

impl ResetArgs {
    /// # Errors
    /// Says what of the state can't be read or written, or that nobody said what is to be forgotten.
    pub(super) fn run(&self, out: &mut Output<'_>) -> Result<Exit, String> {
        let stored = Stored::read(&self.state)?;
        let kept = stored.kept();
        if let Some(key) = self.key.as_deref().filter(|key| !kept.contains(key)) {
            return self.missing(key, &stored, out);
        }
        if self.key.is_none() && !self.all && !confirmed(kept.len(), &stored)? {
            say(&"nothing was forgotten");
            return Ok(Exit::Refused);
        }
        if !kept.is_empty() {
            stored.reset(self.key.as_deref())?;
        }
        let keys = match &self.key {
            Some(key) => vec![key.as_str()],
            None => kept,
        };
        match self.json {
            true => out.json(&Reset { store: stored.path(), reset: keys })?,
            false => out.line(&told(&keys, &stored.path()))?,
        }
        Ok(Exit::Success)
    }

    fn missing(&self, key: &str, stored: &Stored, out: &mut Output<'_>) -> Result<Exit, String> {
        if self.json {
            out.json(&Reset { store: stored.path(), reset: Vec::new() })?;
        }
        let (told, path) = (printable(key), stored.path());
        let near: Vec<_> = near(key, &stored.kept()).into_iter().map(printable).collect();
        match near.is_empty() {
            true => say(&format_args!("nothing is kept of {told} in {path}")),
            false => say(&format_args!(
                "nothing is kept of {told} in {path}; did you mean {}?",
                near.join(", ")
            )),
        }
        Ok(Exit::Missing)
    }
}

/// What was forgotten. Names are a contract.
#[derive(Debug, Serialize)]
struct Reset<'a> {
    store: String,
    reset: Vec<&'a str>,
}

/// Asks whoever sits at the terminal.
fn confirmed(keys: usize, stored: &Stored) -> Result<bool, String> {
    if !io::stdin().is_terminal() {
        return Err("which key? Name one, or give --all".to_owned());
    }
    eprint!("Forget what {} used, in {}? [y/N] ", keys_have(keys), stored.path());
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| error.to_string())?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn told(keys: &[&str], path: &str) -> String {
    match keys {
        [] => format!("there was nothing to forget in {path}"),
        [key] => format!("forgot what {} has used", printable(key)),
        keys => format!("forgot what {} used", keys_have(keys.len())),
    }
}

fn keys_have(keys: usize) -> String {
    match keys {
        1 => "1 key has".to_owned(),
        keys => format!("{keys} keys have"),
    }
}

/// The names that somebody may have meant, the nearest first, at most three.
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

/// Above which two names are alike; 1 is the same.
const LIKE: f64 = 0.8;

pub(super) const ABOUT: &str = "\
Forget what was used.

Of one key, or of all with --all; without either, a terminal is asked. Limits stay, and so does what \
is in flight. Programs that have a SQLite store open forget it too, within their flush interval; a \
YAML store can't be reset while a program has it open.";

const EXAMPLES: &str = "\
Examples:
  One key:
    tollgate reset gpt-4o

  All keys of a project:
    tollgate reset --all --store state.db

JSON:
  one document in one line: {\"store\": .., \"reset\": [the keys]}

Exit codes:
  0    forgotten
  1    nothing is kept of that key; or whoever was asked said no
  2    wrong arguments, or state that can't be read or written";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_near_are_told_nearest_first_and_others_are_not() {
        let names = ["", " ", "claude-sonnet-4-5", "gpt-4o", "gpt-4o-mini", "tenant:a"];
        assert_eq!(near("gpt4o", &names), ["gpt-4o", "gpt-4o-mini"]);
        assert_eq!(near("sonnet", &names), ["claude-sonnet-4-5"]);
        assert_eq!(near("GPT-4O-2024", &names)[0], "gpt-4o");
        assert_eq!(near("mistral", &names), [""; 0]);
        assert_eq!(near("", &names), [""; 0]);
    }
}
