use std::fmt;

use serde_json::error::Category;

/// A source that is no HAR file, or that could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HarError {
    /// How many entries were handed out before.
    pub entries: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It holds nothing.
    Empty,
    /// It is JSON, but neither a HAR file nor an entry of one.
    NoEntries,
    /// It ends in the middle.
    CutOff {
        /// The line at which it ends, from 1.
        line: usize,
    },
    /// It is no JSON from here on.
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The byte in the line, from 1.
        column: usize,
    },
    /// The system could not read it.
    Unreadable(String),
}

impl Problem {
    pub(super) fn of_io(error: &std::io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }

    /// What the parser says, without what it met: that may be a secret.
    pub(super) fn of_json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => Self::CutOff { line },
            Category::Syntax => Self::NotJson { line, column },
            Category::Data => Self::NoEntries,
            Category::Io => Self::Unreadable(error.to_string()),
        }
    }
}

impl fmt::Display for HarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::Empty => f.write_str("the file is empty; record or export it again"),
            Problem::NoEntries => f.write_str(
                "not a HAR file: no `log.entries`; export it as HAR 1.2, or write one HAR entry per \
                 line",
            ),
            Problem::CutOff { line } => write!(
                f,
                "truncated in entry {}, at line {line}; export it again",
                self.entries,
            ),
            Problem::NotJson { line, column } => write!(
                f,
                "invalid JSON at line {line}, byte {column}, in or after entry {}; export it again \
                 as HAR 1.2",
                self.entries,
            ),
            Problem::Unreadable(reason) => write!(f, "cannot read: {reason}"),
        }
    }
}

impl std::error::Error for HarError {}
