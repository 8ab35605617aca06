use std::fmt;
use std::io::{self, BufRead};

use super::ids::{Id, Ids};
use super::input::{ParsedLine, Reader};
use super::output::{FinishedRequests, LineStatus};

/// Options for resuming an output of earlier runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resume {
    /// The action for changed lines.
    pub changed: OnChange,
    /// Send permanently failed lines again.
    pub retry_failed: bool,
}

/// The action for input lines that have changed since an earlier run finished them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum OnChange {
    /// List them and send nothing
    #[default]
    Refuse,
    /// Send them again and replace their results
    Resend,
}

/// The input lines that have changed since an earlier run finished them.
#[derive(Debug, Default)]
pub struct Changes {
    ids: Ids,
    first: Vec<(u64, String)>,
    by_number: bool,
}

impl Changes {
    /// Compares every input line with the finished requests.
    ///
    /// # Errors
    /// An I/O error of the input.
    pub fn find(reader: Reader<impl BufRead>, done: &FinishedRequests) -> io::Result<Self> {
        let mut changes = Self::default();
        for parsed in reader {
            let parsed = parsed?;
            if done.status(&parsed) == LineStatus::Changed {
                changes.add(&parsed);
            }
        }
        Ok(changes)
    }

    /// Returns the changes for one changed line.
    pub(super) fn of(parsed: &ParsedLine) -> Self {
        let mut changes = Self::default();
        changes.add(parsed);
        changes
    }

    /// Returns the ids of the changed lines.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Returns true if no line has changed.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn add(&mut self, parsed: &ParsedLine) {
        let (number, custom_id) = parsed.place();
        // A reader returns each id once.
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

/// Truncates an id for a message.
pub(super) fn shortened(custom_id: &str) -> String {
    match custom_id.char_indices().nth(LONGEST_ID) {
        Some((end, _)) => format!("{}...", &custom_id[..end]),
        None => custom_id.to_owned(),
    }
}

/// The number of lines in a message.
const SHOWN: usize = 5;
/// The length of an id in a message, in characters.
const LONGEST_ID: usize = 64;
