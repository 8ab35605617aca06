use std::time::Duration;

use paceline_limiter::quota::{Dimension, Key, Window};
use rusqlite::Row;

use super::database_error::{DatabaseError, DatabaseProblem};
use crate::dimension;

/// The identity of a bucket, the same for all owners.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BucketId {
    pub(super) key: Key,
    pub(super) dimension: Dimension,
    pub(super) window: Window,
}

impl BucketId {
    /// Reads key, dimension and window from three columns of a row, starting at `from`.
    pub(super) fn read(row: &Row<'_>, from: usize) -> Result<Self, DatabaseError> {
        let key: String = row.get(from)?;
        let dimension = dimension::read(row.get_ref(from + 1)?.as_str().unwrap_or_default());
        let window = stored_window(row.get(from + 2)?);
        match (dimension, window) {
            (Some(dimension), Some(window)) => Ok(Self { key: key.into(), dimension, window }),
            _ => Err(DatabaseProblem::Corrupt.into()),
        }
    }
}

/// Returns the window that is stored as this number of nanoseconds. SQLite's largest number is that of a window
/// without an end.
pub(super) fn stored_window(nanos: u64) -> Option<Window> {
    match i64::try_from(nanos) {
        Ok(i64::MAX) | Err(_) => Some(Window::ENDLESS),
        Ok(_) => Window::new(Duration::from_nanos(nanos)).ok(),
    }
}
