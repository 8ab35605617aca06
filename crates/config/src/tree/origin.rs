use std::fmt;
use std::sync::Arc;

/// The source of a value of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A file.
    File {
        /// The path of the file, as it was given.
        file: Arc<str>,
        /// The position in the file, or `None` for the file as a whole.
        position: Option<Position>,
    },
    /// The environment variable of this name.
    Environment(Arc<str>),
    /// A command-line flag, such as `--rpm`.
    Flag(Arc<str>),
    /// The built-in quotas of the provider of this name.
    Profile(Arc<str>),
    /// The default.
    BuiltIn,
}

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Origin {
    /// Returns the position in a file, or `None` for other sources.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::File { position, .. } => *position,
            _ => None,
        }
    }

    /// Formats the source without the column: `paceline.yaml:12`.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::File { file, position: Some(position) } => format!("{file}:{}", position.line),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    /// Formats the source: `paceline.yaml:12:9`, `PACELINE_STORE__FLUSH`, `--rpm`, `profile openai`, `built-in`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, position: None } => f.write_str(file),
            Self::File { file, position: Some(Position { line, column }) } => {
                write!(f, "{file}:{line}:{column}")
            }
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::BuiltIn => f.write_str("built-in"),
        }
    }
}
