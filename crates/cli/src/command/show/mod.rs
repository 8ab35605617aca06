//! `paceline show`: shows the usage of each limit.

mod bar;
pub(super) mod key_usage;
pub(super) mod screen;
pub(super) mod table;

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::time::MissedTickBehavior;

use super::shared_usage::SharedUsage;
use super::signal::stop_requested;
use super::stdout::Stdout;
use super::stored_state::StoredState;
use super::{Exit, StateArgs};
use crate::terminal::{HumanDuration, printable};
use key_usage::{KeyUsage, Rfc3339};
use screen::Screen;
use table::KeyTable;

/// The arguments of `paceline show`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ShowArgs {
    /// Keys to show: names, or globs such as `claude-*` [default: all]
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,

    /// The configuration and the store.
    #[command(flatten)]
    pub state: StateArgs,

    /// Print one JSON document on one line; with --watch one per second
    #[arg(long)]
    pub json: bool,

    /// Update every second until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
}

impl ShowArgs {
    /// Runs the command and prints its output.
    ///
    /// # Errors
    /// Returns an error of the configuration, the state or standard output.
    pub(super) async fn run(&self, out: &mut Stdout<'_>) -> Result<Exit, String> {
        let show = async |shared: Option<&SharedUsage>| self.show(out, shared).await;
        SharedUsage::with(&self.state.config, show).await
    }

    async fn show(
        &self,
        out: &mut Stdout<'_>,
        shared: Option<&SharedUsage>,
    ) -> Result<Exit, String> {
        if !self.watch {
            let shown = self.read(shared).await?;
            let Screen { width, colors, .. } = Screen::stdout();
            match self.json {
                true => out.json(&shown)?,
                false => out.write(&shown.text(width, colors))?,
            }
            return Ok(shown.exit());
        }
        let mut interrupted = std::pin::pin!(stop_requested());
        let mut tick = tokio::time::interval(SECOND);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !out.is_closed() {
            tokio::select! {
                biased;
                _ = &mut interrupted => break,
                _ = tick.tick() => self.update(out, shared).await?,
            }
        }
        Ok(Exit::Success)
    }

    async fn update(
        &self,
        out: &mut Stdout<'_>,
        shared: Option<&SharedUsage>,
    ) -> Result<(), String> {
        let shown = self.read(shared).await?;
        if self.json {
            return out.json(&shown);
        }
        let screen = Screen::stdout();
        out.write(&screen.replaced_by(&shown.text(screen.width, screen.colors)))
    }

    async fn read(&self, shared: Option<&SharedUsage>) -> Result<ShowOutput, String> {
        let stored = StoredState::read(&self.state, shared)?;
        let keys = stored.key_usage(&self.keys).await?;
        let at = Rfc3339(stored.now());
        let missing = self.keys.iter().filter(|name| !keys.iter().any(|key| is_named(key, name)));
        let missing = missing.cloned().collect();
        let config = stored.config.as_ref().map(|path| path.display().to_string());
        let outage = shared.and_then(SharedUsage::outage_cause);
        let (store, exists, is_default) = (stored.path(), stored.exists(), stored.is_default);
        Ok(ShowOutput { at, store, exists, is_default, config, keys, missing, outage })
    }
}

/// The JSON output. Field names are stable.
#[derive(Debug, Serialize)]
struct ShowOutput {
    at: Rfc3339,
    store: String,
    #[serde(skip)]
    exists: bool,
    /// True if neither the arguments nor the configuration name a store.
    #[serde(skip)]
    is_default: bool,
    config: Option<String>,
    keys: Vec<KeyUsage>,
    /// The requested keys that don't exist.
    missing: Vec<String>,
    /// The reason why the store of shared limits doesn't answer any more; null if it does.
    outage: Option<String>,
}

impl ShowOutput {
    fn text(&self, width: usize, colors: bool) -> String {
        let mut text = KeyTable::new(&self.keys, self.at.0, width, colors).to_string();
        if self.keys.is_empty() && self.missing.is_empty() {
            text = match self.exists {
                true => format!("no usage: {} has no keys\n", self.store),
                false if self.is_default => format!("no usage: {} {NO_STORE}\n", self.store),
                false => format!("no usage: {} {NO_FILE}\n", self.store),
            };
        }
        if let Some(cause) = &self.outage {
            let oldest = self.keys.iter().filter_map(|key| key.as_of).min();
            let age = oldest.and_then(|as_of| HumanDuration::between(as_of.0, self.at.0));
            let age = age.map_or_else(String::new, |age| format!(" is {age} old"));
            text.push_str(&format!("shared usage{age}: {}\n", printable(cause)));
        }
        for name in &self.missing {
            text.push_str(&format!("{}: no such key\n", printable(name)));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.missing.is_empty() { Exit::Success } else { Exit::Missing }
    }
}

fn is_named(key: &KeyUsage, name: &str) -> bool {
    wildmatch::WildMatch::new(name).matches(&key.key)
}

const NO_STORE: &str = "does not exist, and no `store` is configured; set one with --config, or name a \
                        state file with --store";

const NO_FILE: &str = "does not exist; programs with this store create it at their start";

const SECOND: Duration = Duration::from_secs(1);

pub(super) const ABOUT: &str = "\
Show current usage of each limit.

Lists keys by name, with one line per limit: a bar (`#` used, `=` reserved by requests in flight, \
`-` available), used / limit, the reserved amount, and the time until the limit is unused again. \
A line `learned` shows a rate that a program has measured by the provider's answers, with the rate \
of the quota, the number of measurements and their age. A line `5h window 92 % used` shows the \
used part of a window of a subscription, as the provider has last stated it. The longest time that \
requests wait for a key stands behind its name, if its quota (`max_wait`, `mode: reject`) or \
`waiting.max_wait` bounds it; `paceline serve` has a bound of 4 minutes of its own. \
Limits come from the configuration; without one, from the program that wrote the state. Keys \
named in the configuration are listed even if never used, and so is a KEY that matches a glob or \
regular expression, with the name of that quota.

The usage of limits that are shared between machines (`cluster`) is read from their store. Of keys \
that match a glob or regular expression, name those to show.

Reads the state without changing it or disturbing programs that share it. Usage since their last \
write (`store.flush`) may be missing.";

const EXAMPLES: &str = "\
Examples:
  Show all keys:
    paceline show

  Show some keys, updated every second:
    paceline show gpt-4o 'claude-*' --watch

  Show the state of a project:
    paceline show --config paceline.yaml --store state.db

  Print the tokens available in this minute:
    paceline show gpt-4o --json | jq '.keys[0].limits[] | select(.dimension == \"tokens\").available'

JSON:
  {\"at\", \"store\", \"config\", \"keys\": [{\"key\", \"quota\", \"cooling_until\", \"cooling_kind\", \"limits\":
  [{\"dimension\", \"window_s\", \"limit\", \"original\", \"used\", \"held\", \"available\", \"resets_at\"}], \"learned\":
  [{\"dimension\", \"amount\", \"configured\", \"measured_at\", \"events\", \"source\"}], \"utilization\":
  [{\"window\", \"used\", \"resets_at\", \"observed_at\", \"held_to\"}], \"max_wait_s\", \"as_of\"}],
  \"missing\", \"outage\"}
  `cooling_kind` is the kind of the refusal behind the pause, as in `paceline explain --json`, null if it is unknown.
  `max_wait_s` is the longest time that a request waits for the key: 0 with `mode: reject`, null without a bound.
  `as_of` is the time of the usage of shared limits, `outage` why their store doesn't answer any more.
  Times are RFC 3339, amounts are integers; learned amounts are per second. One document on one line; with --watch one per second.

Files and environment: see paceline --help. NO_COLOR disables colors; output to a file or pipe has
none, and at most 80 columns.

Exit codes:
  0    success; with --watch, ended by Ctrl-C
  1    no such key
  2    wrong arguments, an unreadable configuration or state, or an unavailable store of shared
       limits";
