use std::fmt;

use serde::de;

use super::nearest::nearest;
use crate::error::Problem;
use crate::tree::{FieldPath, Node, Segment, quote};

/// An error at one place of a tree.
#[derive(Debug)]
pub(crate) struct ReadError {
    /// The path of the value, which each level prepends its segment to.
    pub(super) path: FieldPath,
    pub(super) kind: Kind,
    message: String,
}

/// The subject of an error.
#[derive(Debug)]
pub(super) enum Kind {
    /// The name of an entry.
    Name,
    /// The value.
    Value,
    /// The combination of the fields of the value.
    Whole,
    /// A missing entry.
    Missing(&'static str),
}

impl ReadError {
    pub(super) fn value(message: impl Into<String>) -> Self {
        Self { path: FieldPath::default(), kind: Kind::Value, message: message.into() }
    }

    /// Creates the error for an entry with an unknown name.
    pub(crate) fn unknown_name(name: &str, allowed: &[&str]) -> Self {
        Self::new(Kind::Name, unknown("field", name, allowed))
    }

    /// Returns the error with a segment in front of its path.
    pub(crate) fn below(mut self, step: Segment) -> Self {
        self.path.prepend(step);
        self
    }

    pub(super) fn problem(&self, tree: &Node) -> Problem {
        let name = match self.kind {
            Kind::Name => tree.name_origin(&self.path),
            _ => None,
        };
        let origin = name.unwrap_or_else(|| tree.origin_of(&self.path));
        Problem::new(origin.clone(), &self.path, self.message.clone())
    }

    fn new(kind: Kind, message: String) -> Self {
        Self { path: FieldPath::default(), kind, message }
    }
}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Kind::Whole, message.to_string())
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        let given = match unexpected {
            de::Unexpected::Str(text) => quote(text),
            de::Unexpected::Unit => "nothing".to_owned(),
            other => other.to_string(),
        };
        Self::value(format!("must be {wanted}, not {given}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown_name(field, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Kind::Value, unknown("value", variant, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Kind::Missing(field), format!("`{field}` is missing"))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

fn unknown(kind: &str, given: &str, allowed: &[&str]) -> String {
    let meant = nearest(given, allowed);
    let meant = meant.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
    format!("unknown {kind} {}{meant}; allowed: {}", quote(given), allowed.join(", "))
}
