use std::path::PathBuf;
use std::time::Duration;

/// The store that keeps state across restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The file. Its path is absolute if the configuration was loaded from a file.
    pub file: StoreFile,
    /// The interval between writes of changes.
    pub flush: Duration,
}

impl StoreConfig {
    /// Creates a store in this file with this interval between writes.
    pub fn new(file: StoreFile, flush: Duration) -> Self {
        Self { file, flush }
    }
}

/// The file of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreFile {
    /// A SQLite database.
    Sqlite(PathBuf),
    /// A YAML file.
    Yaml(PathBuf),
}
