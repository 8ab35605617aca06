use std::fmt;

use crate::tree::{FieldPath, Origin};

/// All problems of an invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The problems in file order; never empty.
    pub problems: Vec<Problem>,
}

/// One problem of a configuration. Possible secrets are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The source of the invalid value.
    pub origin: Origin,
    /// The path of the value, such as `quotas.gpt-4o.rpm`; empty for the whole configuration.
    pub path: String,
    /// The reason, and the allowed values.
    pub message: String,
}

impl ConfigError {
    /// Creates an error from problems, and sorts them by position in the file.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.origin.position());
        Self { problems }
    }
}

impl Problem {
    pub(super) fn new(origin: Origin, path: &FieldPath, message: impl Into<String>) -> Self {
        Self { origin, path: path.to_string(), message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    /// Formats each problem on a separate line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    /// `paceline.yaml:3:17: quotas.gpt-4o.rpm: ...`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}
