use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use serde::Serialize;

use crate::{StoreError, go_ratelimit, regular_file};

/// The program and format of a state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A file of [`Yaml`](crate::Yaml).
    Yaml,
    /// A database of [`Sqlite`](crate::Sqlite).
    Sqlite,
    /// go-ratelimit's `ratelimits.yaml`.
    GoYaml,
    /// go-ratelimit's SQLite database.
    GoSqlite,
}

impl FileKind {
    /// Detects the kind of a file by its content. Returns `None` for an empty or missing file. A file
    /// of an unknown program counts as paceline's file of the same format, whose reader reports the
    /// problem.
    pub(crate) fn detect(path: &Path) -> Result<Option<Self>, StoreError> {
        let failed = |error: io::Error| StoreError::new(path, format!("cannot be read: {error}"));
        let mut file = match regular_file::metadata(path).and_then(|_| File::open(path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let mut text = Vec::new();
        file.by_ref().take(SQLITE.len() as u64).read_to_end(&mut text).map_err(failed)?;
        if text == SQLITE {
            let theirs = go_ratelimit::is_database(path)?;
            return Ok(Some(if theirs { Self::GoSqlite } else { Self::Sqlite }));
        }
        file.read_to_end(&mut text).map_err(failed)?;
        if text.trim_ascii().is_empty() {
            return Ok(None);
        }
        let theirs = std::str::from_utf8(&text).is_ok_and(go_ratelimit::is_file);
        Ok(Some(if theirs { Self::GoYaml } else { Self::Yaml }))
    }

    /// Returns the kind that the extension of a file name implies.
    pub(crate) fn from_extension(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "db" | "sqlite" | "sqlite3" => Some(Self::Sqlite),
            _ => None,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yaml => "YAML",
            Self::Sqlite => "SQLite",
            Self::GoYaml => "go-ratelimit YAML",
            Self::GoSqlite => "go-ratelimit SQLite",
        })
    }
}

/// The header of a SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";
