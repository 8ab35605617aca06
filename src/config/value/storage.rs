use std::path::PathBuf;
use std::time::Duration;

/// Where state is kept across restarts, and how often it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Storage {
    /// Where; a whole path, if it was read of a file.
    pub place: StoragePlace,
    /// How often what changed is written.
    pub flush: Duration,
}

impl Storage {
    /// State is kept there, and what changed is written this often.
    pub fn new(place: StoragePlace, flush: Duration) -> Self {
        Self { place, flush }
    }
}

/// A file that keeps state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoragePlace {
    /// A SQLite database.
    Sqlite(PathBuf),
    /// A YAML file.
    Yaml(PathBuf),
}
