use std::fmt;

use super::tree::{Origin, Steps};

/// A configuration that can't be used: all that was found wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// What is wrong, in the order of the file; never empty.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong with a configuration. What could be a secret is left out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Where it was said.
    pub origin: Origin,
    /// The way to the value, as `quotas.gpt-4o.rpm`; empty for the whole.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl ConfigError {
    /// In the order in which a reader would come by them.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.origin.position());
        Self { problems }
    }
}

impl Problem {
    pub(super) fn new(origin: Origin, path: &Steps, message: impl Into<String>) -> Self {
        Self { origin, path: path.to_string(), message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    /// One problem a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    /// `tollgate.yaml:3:17: quotas.gpt-4o.rpm: ...`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}
