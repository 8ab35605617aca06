use std::path::{Path, PathBuf};

use crate::limiter::Boot;
use crate::store::{Sqlite, State, StoreError, Yaml};

/// A file of state, and of which kind it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Sqlite(PathBuf),
    Yaml(PathBuf),
}

impl Place {
    /// The kind that a file's name says: YAML for `.yaml` and `.yml`, else SQLite.
    pub(super) fn named(path: PathBuf) -> Self {
        let end = path.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
        match end.as_deref() {
            Some("yaml" | "yml") => Self::Yaml(path),
            _ => Self::Sqlite(path),
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Sqlite(path) | Self::Yaml(path) => path,
        }
    }

    /// Whether anybody has kept anything there yet.
    pub(super) fn exists(&self) -> bool {
        self.path().exists()
    }

    /// What it keeps, by a clock that says `now` (nanoseconds since the epoch); nothing, where there
    /// is no such file. Nothing is written.
    ///
    /// # Errors
    /// [`StoreError`] if it can't be read.
    pub(super) fn peek(&self, now: u64, boot: Option<&Boot>) -> Result<State, StoreError> {
        match self {
            _ if !self.exists() => Ok(State::default()),
            Self::Sqlite(path) => Sqlite::peek(path, now, None),
            Self::Yaml(path) => Yaml::peek(path, now, None),
        }
    }

    /// Forgets what was used of a key, or of all.
    ///
    /// # Errors
    /// [`StoreError`] if it can't be read or written, and for a YAML file while somebody has it open.
    pub(super) fn reset(
        &self,
        key: Option<&str>,
        now: u64,
        boot: Option<&Boot>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(path) => Sqlite::reset(path, key, now, None),
            Self::Yaml(path) => Yaml::reset(path, key, now).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_which_kind_it_is() {
        for (name, is_yaml) in
            [("a.yaml", true), ("a.YML", true), ("a.db", false), ("a", false), (".yaml", false)]
        {
            let place = Place::named(name.into());
            assert_eq!(
                place,
                if is_yaml { Place::Yaml(name.into()) } else { Place::Sqlite(name.into()) }
            );
        }
    }
}
