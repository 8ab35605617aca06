use std::time::Duration;

use rusqlite::Row;

use super::database_error::{DatabaseError, DatabaseProblem};
use crate::quota::{Dimension, Key, Window};
use crate::store::dimension;

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
        let window = Window::new(Duration::from_nanos(row.get(from + 2)?));
        match (dimension, window) {
            (Some(dimension), Ok(window)) => Ok(Self { key: key.into(), dimension, window }),
            _ => Err(DatabaseProblem::Corrupt.into()),
        }
    }
}
