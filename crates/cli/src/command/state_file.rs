use std::path::{Path, PathBuf};

use paceline::Timestamp;
use paceline::limiter::Boot;
use paceline::store::{self, State, StoreError};
use paceline_config::StoreFile;

/// A state file and its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StateFile(pub(super) StoreFile);

impl StateFile {
    /// Returns the file with the format of its extension: YAML for `.yaml` and `.yml`, else SQLite.
    pub(super) fn named(path: PathBuf) -> Self {
        let end = path.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
        Self(match end.as_deref() {
            Some("yaml" | "yml") => StoreFile::Yaml(path),
            _ => StoreFile::Sqlite(path),
        })
    }

    pub(super) fn path(&self) -> &Path {
        match &self.0 {
            StoreFile::Sqlite(path) | StoreFile::Yaml(path) => path,
        }
    }

    /// Returns true if the file exists, or if that can't be determined.
    pub(super) fn exists(&self) -> bool {
        self.path().try_exists().unwrap_or(true)
    }

    /// Reads the state at `now` without writing, and detects the format from the content. The state is
    /// empty if the file does not exist.
    ///
    /// # Errors
    /// [`StoreError`] if the file can't be read.
    pub(super) fn peek(&self, now: Timestamp, boot: Option<Boot>) -> Result<State, StoreError> {
        if !self.exists() {
            return Ok(State::default());
        }
        store::peek(self.path(), now, boot)
    }

    /// Resets the usage of a key, or of all keys.
    ///
    /// # Errors
    /// [`StoreError`] if the file can't be read or written, and for a YAML file that is open in
    /// another program.
    pub(super) fn reset(
        &self,
        key: Option<&str>,
        now: Timestamp,
        boot: Option<Boot>,
    ) -> Result<(), StoreError> {
        store::reset(self.path(), key, now, boot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_file_format_follows_extension() {
        let names =
            [("a.yaml", true), ("a.YML", true), ("a.db", false), ("a", false), (".yaml", false)];
        for (name, is_yaml) in names {
            let place = StateFile::named(name.into());
            assert_eq!(matches!(place.0, StoreFile::Yaml(_)), is_yaml, "{name}");
        }
    }
}
