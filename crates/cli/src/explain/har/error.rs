use std::fmt;

use serde_json::error::Category;

/// An error while reading a HAR file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HarError {
    /// The number of entries read before the error.
    pub entries: usize,
    /// The kind of error.
    pub kind: HarErrorKind,
}

/// The kind of an error in a HAR file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HarErrorKind {
    /// The file is empty.
    Empty,
    /// The file is JSON, but neither a HAR file nor an entry.
    NoEntries,
    /// The file is truncated.
    CutOff {
        /// The last line, from 1.
        line: usize,
    },
    /// The file is not valid JSON.
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The byte in the line, from 1.
        column: usize,
    },
    /// An I/O error.
    Unreadable(String),
}

impl HarErrorKind {
    pub(super) fn of_io(error: &std::io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }

    /// Converts an error of the parser, without the content that it quotes, which may be a secret.
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
        match &self.kind {
            HarErrorKind::Empty => f.write_str("the file is empty; record or export it again"),
            HarErrorKind::NoEntries => f.write_str(
                "not a HAR file: no `log.entries`; export it as HAR 1.2, or write one HAR entry per \
                 line",
            ),
            HarErrorKind::CutOff { line } => write!(
                f,
                "truncated in entry {}, at line {line}; export it again",
                self.entries,
            ),
            HarErrorKind::NotJson { line, column } => write!(
                f,
                "invalid JSON at line {line}, byte {column}, in or after entry {}; export it again \
                 as HAR 1.2",
                self.entries,
            ),
            HarErrorKind::Unreadable(reason) => write!(f, "cannot read: {reason}"),
        }
    }
}

impl std::error::Error for HarError {}
