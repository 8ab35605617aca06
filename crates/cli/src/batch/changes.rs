use std::fmt;
use std::io::{self, BufRead};

use super::ids::{Id, Ids};
use super::input::{Entry, Reader};
use super::output::{Done, LineStatus};

/// How a run goes on with an output that earlier runs have written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resume {
    /// What is done about lines that have changed since.
    pub changed: OnChange,
    /// Whether lines that failed for good are sent again.
    pub retry_failed: bool,
}

/// What is done about lines of the input that have changed since an earlier run finished them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum OnChange {
    /// List them and send nothing
    #[default]
    Refuse,
    /// Send them again and replace their results
    Resend,
}

/// Lines of the input that have changed since an earlier run finished them.
#[derive(Debug, Default)]
pub struct Changes {
    ids: Ids,
    first: Vec<(u64, String)>,
    by_number: bool,
}

impl Changes {
    /// Compares every line of the input with what is done.
    ///
    /// # Errors
    /// Those of reading.
    pub fn find(reader: Reader<impl BufRead>, done: &Done) -> io::Result<Self> {
        let mut changes = Self::default();
        for entry in reader {
            let entry = entry?;
            if done.status(&entry) == LineStatus::Changed {
                changes.add(&entry);
            }
        }
        Ok(changes)
    }

    /// A single changed line.
    pub(super) fn of(entry: &Entry) -> Self {
        let mut changes = Self::default();
        changes.add(entry);
        changes
    }

    /// Their ids, each with its line.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Whether no line has changed.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn add(&mut self, entry: &Entry) {
        let (number, custom_id) = entry.place();
        // No id comes out of a reader twice.
        let _ = self.ids.insert(Id::of(custom_id), number);
        if self.first.len() < SHOWN {
            self.first.push((number, custom_id.to_owned()));
        }
        self.by_number |= custom_id == format!("line-{number}");
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.ids.len();
        let (end, pronoun) = if count == 1 { (" has", "it") } else { ("s have", "them") };
        write!(f, "{count} line{end} changed since an earlier run finished {pronoun}: ")?;
        for (index, (number, custom_id)) in self.first.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}line {number} ({:?})", shortened(custom_id))?;
        }
        match count.saturating_sub(self.first.len()) {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        if self.by_number {
            f.write_str(
                "; lines without a custom_id are identified by line number, so that inserting or \
                 removing a line changes all lines below",
            )?;
        }
        write!(
            f,
            "; undo the change, write to another output, or send {pronoun} again with --changed \
             resend"
        )
    }
}

/// The start of an id, which may be of any length.
pub(super) fn shortened(custom_id: &str) -> String {
    match custom_id.char_indices().nth(LONGEST_ID) {
        Some((end, _)) => format!("{}...", &custom_id[..end]),
        None => custom_id.to_owned(),
    }
}

/// How many lines a message names.
const SHOWN: usize = 5;
/// How many characters of an id a message shows.
const LONGEST_ID: usize = 64;
