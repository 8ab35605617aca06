use std::path::Path;
use std::{fmt, io};

use rusqlite::ErrorCode;

use crate::store::StoreError;

/// Why a database can't be used.
#[derive(Debug)]
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    Trouble(Trouble),
}

/// What SQLite doesn't say itself.
#[derive(Debug)]
pub(super) enum Trouble {
    Io(io::Error),
    Folder(io::Error),
    IsFolder,
    NoDatabase,
    GoRatelimit,
    Foreign,
    Newer(i32),
    Corrupt,
    ReadOnly,
    NoWal,
    NotOpen,
    Quota(String),
}

impl Fault {
    pub(super) fn at(&self, path: &Path) -> StoreError {
        StoreError::new(path, self.to_string())
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trouble(trouble) => write!(f, "{trouble}"),
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
        ErrorCode::NotADatabase => write!(f, "{}", Trouble::NoDatabase),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => write!(f, "{}", Trouble::ReadOnly),
        ErrorCode::DiskFull => f.write_str("the disk is full; make room on it"),
        ErrorCode::CannotOpen => {
            f.write_str("can't be opened: check that its folder may be read and written")
        }
        ErrorCode::SystemIoFailure => write!(f, "the disk can't be read or written ({error})"),
        _ => write!(f, "can't be used ({error})"),
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "can't be read ({error})"),
            Self::Folder(error) => write!(f, "its folder can't be made ({error})"),
            Self::IsFolder => f.write_str("is a folder, where a database should be"),
            Self::NoDatabase => f.write_str(NO_DATABASE),
            Self::GoRatelimit => f.write_str(
                "is a database of go-ratelimit; take it over into another file with `tollgate migrate`",
            ),
            Self::Foreign => {
                f.write_str("is a database of another program, and was left as it is; name another file")
            }
            Self::Newer(version) => write!(
                f,
                "was written by a newer tollgate (version {version} of its tables), and was left as \
                 it is; use that one, or name another file"
            ),
            Self::Corrupt => f.write_str(CORRUPT),
            Self::ReadOnly => f.write_str(
                "can't be written: check the permissions of the file and of its folder",
            ),
            Self::NoWal => f.write_str(
                "its file system can't be shared by processes (SQLite's WAL); put it on a local disk",
            ),
            Self::NotOpen => f.write_str("isn't open"),
            Self::Quota(name) => write!(f, "the quota of {name:?} in it can't be read"),
        }
    }
}

const BUSY: &str = "another program has held it locked for more than 5 s; end that program";
const CORRUPT: &str =
    "is damaged, and was left as it is; move it away, and tollgate starts a new one";
const NO_DATABASE: &str =
    "is no SQLite database, and was left as it is; move it away, or name another file";
