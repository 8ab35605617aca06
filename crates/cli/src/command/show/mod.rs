//! `tollgate show`: what is used of each limit.

mod bar;
pub(super) mod figures;
pub(super) mod screen;
pub(super) mod table;

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::time::MissedTickBehavior;

use super::output::Output;
use super::signal::asked_to_stop;
use super::stored::Stored;
use super::{Exit, StateArgs};
use crate::terminal::printable;
use figures::{KeyFigures, Moment};
use screen::Screen;
use table::Table;

/// The arguments of `tollgate show`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ShowArgs {
    /// The keys to show: names, or globs as `claude-*` [default: all]
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,

    /// Which limits, and where their state is kept.
    #[command(flatten)]
    pub state: StateArgs,

    /// Print one JSON document in one line; with --watch one line every second
    #[arg(long)]
    pub json: bool,

    /// Show it anew every second until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
}

impl ShowArgs {
    /// # Errors
    /// Says what of the configuration or the state can't be read, or that nothing can be written.
    pub(super) async fn run(&self, out: &mut Output<'_>) -> Result<Exit, String> {
        self.state.tell_if_shared()?;
        if !self.watch {
            let shown = self.look()?;
            let Screen { width, colors, .. } = Screen::stdout();
            match self.json {
                true => out.json(&shown)?,
                false => out.write(&shown.text(width, colors))?,
            }
            return Ok(shown.exit());
        }
        let mut interrupted = std::pin::pin!(asked_to_stop());
        let mut tick = tokio::time::interval(SECOND);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !out.is_closed() {
            tokio::select! {
                biased;
                _ = &mut interrupted => break,
                _ = tick.tick() => self.again(out)?,
            }
        }
        Ok(Exit::Success)
    }

    fn again(&self, out: &mut Output<'_>) -> Result<(), String> {
        let shown = self.look()?;
        if self.json {
            return out.json(&shown);
        }
        let screen = Screen::stdout();
        out.write(&screen.replaced_by(&shown.text(screen.width, screen.colors)))
    }

    fn look(&self) -> Result<Shown, String> {
        let stored = Stored::read(&self.state)?;
        let (at, keys) = (Moment(stored.now()), stored.figures(&self.keys));
        let missing = self.keys.iter().filter(|name| !keys.iter().any(|key| is_named(key, name)));
        let missing = missing.cloned().collect();
        let config = stored.config.as_ref().map(|path| path.display().to_string());
        Ok(Shown { at, store: stored.path(), exists: stored.exists(), config, keys, missing })
    }
}

/// What is shown. Names are a contract.
#[derive(Debug, Serialize)]
struct Shown {
    at: Moment,
    store: String,
    #[serde(skip)]
    exists: bool,
    config: Option<String>,
    keys: Vec<KeyFigures>,
    /// What was asked for, and is not there.
    missing: Vec<String>,
}

impl Shown {
    fn text(&self, width: usize, colors: bool) -> String {
        let mut text = Table::new(&self.keys, self.at.0, width, colors).to_string();
        if self.keys.is_empty() && self.missing.is_empty() {
            text = match self.exists {
                true => format!("nothing is used: {} keeps no key\n", self.store),
                false => format!("nothing is used: there is no {} yet\n", self.store),
            };
        }
        for name in &self.missing {
            text.push_str(&format!("{}: nothing is known of it\n", printable(name)));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.missing.is_empty() { Exit::Success } else { Exit::Missing }
    }
}

fn is_named(key: &KeyFigures, name: &str) -> bool {
    wildmatch::WildMatch::new(name).matches(&key.key)
}

const SECOND: Duration = Duration::from_secs(1);

pub(super) const ABOUT: &str = "\
Show what is used of each limit, and when it resets.

For each key, sorted by name, each of its limits: a bar (`#` used, `=` held by requests in flight, `-` \
left), used / limit, what is held, and in how long all of it is unused again. The limits are those of \
the configuration; without one, those that the programs had who wrote the state. Keys that the \
configuration names are shown also if they were never used, and so is a KEY that falls under a glob or \
a regular expression, with the name of that quota.

What is used of limits that are shared with other machines (`cluster`) is kept elsewhere, which is \
said.

Only looks: nothing is written, and programs that share the state go on undisturbed. Their newest \
second may be missing (`store.flush`).";

const EXAMPLES: &str = "\
Examples:
  All keys:
    tollgate show

  Two of them, again every second:
    tollgate show gpt-4o 'claude-*' --watch

  State of one project:
    tollgate show --config tollgate.yaml --store state.db

  How many tokens of this minute are left:
    tollgate show gpt-4o --json | jq '.keys[0].limits[] | select(.dimension == \"tokens\").available'

JSON:
  {\"at\", \"store\", \"config\", \"keys\": [{\"key\", \"quota\", \"cooling_until\", \"limits\": [{\"dimension\",
  \"window_s\", \"limit\", \"original\", \"used\", \"held\", \"available\", \"resets_at\"}]}], \"missing\"}
  Times are RFC 3339, amounts whole numbers. One document in one line; with --watch one every second.

Files and environment: see tollgate --help. NO_COLOR turns colours off; a file or a pipe gets none,
and lines of at most 80 columns.

Exit codes:
  0    shown; with --watch, ended by Ctrl-C
  1    a key that was asked for isn't there
  2    wrong arguments, or a configuration or state that can't be read";
