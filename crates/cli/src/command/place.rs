use std::path::{Path, PathBuf};

use tollgate::Timestamp;
use tollgate::config::StoreFile;
use tollgate::limiter::Boot;
use tollgate::store::{self, State, StoreError};

/// A file of state, and of which kind it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place(pub(super) StoreFile);

impl Place {
    /// The kind that a file's name says: YAML for `.yaml` and `.yml`, else SQLite.
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

    /// Whether anybody has kept anything there yet, or nobody may look.
    pub(super) fn exists(&self) -> bool {
        self.path().try_exists().unwrap_or(true)
    }

    /// What it keeps, by a clock that says `now`, whichever kind its
    /// content is of; nothing, where there is no such file. Nothing is written.
    ///
    /// # Errors
    /// [`StoreError`] if it can't be read.
    pub(super) fn peek(&self, now: Timestamp, boot: Option<Boot>) -> Result<State, StoreError> {
        if !self.exists() {
            return Ok(State::default());
        }
        store::peek(self.path(), now, boot)
    }

    /// Forgets what was used of a key, or of all.
    ///
    /// # Errors
    /// [`StoreError`] if it can't be read or written, and for a YAML file while somebody has it open.
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
    fn the_end_of_a_name_says_which_kind_it_is() {
        let names =
            [("a.yaml", true), ("a.YML", true), ("a.db", false), ("a", false), (".yaml", false)];
        for (name, is_yaml) in names {
            let place = Place::named(name.into());
            assert_eq!(matches!(place.0, StoreFile::Yaml(_)), is_yaml, "{name}");
        }
    }
}
