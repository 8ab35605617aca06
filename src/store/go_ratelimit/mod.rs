//! State of go-ratelimit, a rate limiter in Go: read, never written.
//!
//! It knows three limits of a model: requests and tokens of the last minute, and requests of the 24
//! hours since the first of them. It keeps them in a YAML file (`ratelimits.yaml`) or in a SQLite
//! database, times as RFC 3339 or as nanoseconds since the epoch.

mod imported;
mod sqlite;
mod yaml;

pub(super) use imported::ImportedState;
pub(super) use sqlite::{is_database, read_database};
pub(super) use yaml::{is_file, read_file};
