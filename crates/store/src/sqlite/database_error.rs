use std::path::Path;
use std::{fmt, io};

use rusqlite::ErrorCode;

use crate::StoreError;

/// An error of the database.
#[derive(Debug)]
pub(super) enum DatabaseError {
    Sqlite(rusqlite::Error),
    DatabaseProblem(DatabaseProblem),
}

/// Problems that SQLite does not report itself.
#[derive(Debug)]
pub(super) enum DatabaseProblem {
    Io(io::Error),
    Directory(io::Error),
    IsDirectory,
    NotADatabase,
    GoRatelimit,
    Foreign,
    Newer(i32),
    Corrupt,
    ReadOnly,
    NoWal,
    NotOpen,
    Lost,
    Quota(String),
}

impl DatabaseError {
    pub(super) fn at(&self, path: &Path) -> StoreError {
        let lost = matches!(self, Self::DatabaseProblem(DatabaseProblem::Lost));
        StoreError { lost, ..StoreError::new(path, self.to_string()) }
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<DatabaseProblem> for DatabaseError {
    fn from(problem: DatabaseProblem) -> Self {
        Self::DatabaseProblem(problem)
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DatabaseProblem(problem) => write!(f, "{problem}"),
            Self::Sqlite(error) => match error.sqlite_error_code() {
                Some(code) => explain(code, error, f),
                None => write!(f, "{CORRUPT} ({error})"),
            },
        }
    }
}

fn explain(code: ErrorCode, error: &rusqlite::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => f.write_str(BUSY),
        ErrorCode::DatabaseCorrupt => f.write_str(CORRUPT),
        ErrorCode::NotADatabase => write!(f, "{}", DatabaseProblem::NotADatabase),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            write!(f, "{}", DatabaseProblem::ReadOnly)
        }
        ErrorCode::DiskFull => f.write_str("the disk is full; free some space"),
        ErrorCode::CannotOpen => {
            f.write_str("cannot be opened; check that its directory is readable and writable")
        }
        ErrorCode::SystemIoFailure => write!(f, "I/O error ({error})"),
        _ => write!(f, "database error ({error})"),
    }
}

impl fmt::Display for DatabaseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read ({error})"),
            Self::Directory(error) => write!(f, "cannot create its directory ({error})"),
            Self::IsDirectory => f.write_str("is a directory, not a database file"),
            Self::NotADatabase => f.write_str(NOT_A_DATABASE),
            Self::GoRatelimit => f.write_str(
                "is a go-ratelimit database; import it into another file with `paceline migrate`",
            ),
            Self::Foreign => f.write_str(
                "belongs to another program and was left unchanged; choose another file",
            ),
            Self::Newer(version) => write!(
                f,
                "written by a newer paceline (schema version {version}) and left unchanged; use \
                 that version, or choose another file"
            ),
            Self::Corrupt => f.write_str(CORRUPT),
            Self::ReadOnly => f.write_str(
                "cannot be written; check the permissions of the file and its directory",
            ),
            Self::NoWal => f.write_str(
                "its file system does not support SQLite's WAL mode; put the file on a local disk",
            ),
            Self::Lost => f.write_str(LOST),
            Self::NotOpen => f.write_str("not open"),
            Self::Quota(name) => write!(f, "quota {name:?}: unknown format"),
        }
    }
}

const BUSY: &str = "locked by another process for more than 5 s; stop that process";
const LOST: &str = "was deleted or replaced while in use; put it back, or restart this process to \
                    use the file that is there";
const CORRUPT: &str = "corrupt, and left unchanged; move it aside to start fresh";
const NOT_A_DATABASE: &str =
    "not a SQLite database, and left unchanged; move it aside, or choose another file";
