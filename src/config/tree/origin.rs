use std::fmt;
use std::sync::Arc;

/// Where a value of the configuration was said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// In a file.
    File {
        /// The file, as it was named.
        file: Arc<str>,
        /// Where in it; `None` where it is about the file as a whole.
        position: Option<Position>,
    },
    /// In an environment variable of this name.
    Environment(Arc<str>),
    /// By a flag of the command, as `--rpm`.
    Flag(Arc<str>),
    /// By a provider's profile of this name: its built-in quotas.
    Profile(Arc<str>),
    /// By nobody: it is the default.
    BuiltIn,
}

/// A place in a text, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Origin {
    /// Where in a file; `None` elsewhere.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::File { position, .. } => *position,
            _ => None,
        }
    }

    /// The same without the column: `tollgate.yaml:12`.
    pub(in crate::config) fn brief(&self) -> String {
        match self {
            Self::File { file, position: Some(position) } => format!("{file}:{}", position.line),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    /// `tollgate.yaml:12:9`, `TOLLGATE_STORE__FLUSH`, `--rpm`, `profile openai`, `built-in`.
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
