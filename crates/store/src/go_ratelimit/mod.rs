//! Reads the state of go-ratelimit, a rate limiter in Go; never writes it.
//!
//! go-ratelimit limits each model by requests and tokens of the last minute, and by requests of the
//! 24 hours since the first of them. Its state is a YAML file (`ratelimits.yaml`) or a SQLite
//! database, with times as RFC 3339 or as nanoseconds since the Unix epoch.

mod imported;
mod sqlite;
mod yaml;

pub(super) use imported::ImportedState;
pub(super) use sqlite::{is_database, read_database};
pub(super) use yaml::{is_file, read_file};
