use std::path::Path;
use std::time::Duration;
use std::{fs, io, thread};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::database_error::{DatabaseError, DatabaseProblem};
use crate::private_file::private_file;
use crate::regular_file;

/// Opens the database for writing, and creates it if it is missing. Nothing is written before the
/// file is known to be a paceline database.
pub(super) fn open(path: &Path) -> Result<Connection, DatabaseError> {
    create_directory(path)?;
    check_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    create_private(path);
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    let version = current_version(&db)?;
    if db.is_readonly("main")? {
        return Err(DatabaseProblem::ReadOnly.into());
    }
    if version == 0 {
        // `auto_vacuum` can be enabled only in an empty database.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    } else {
        check(&db)?;
    }
    configure(&db)?;
    migrate(&mut db)?;
    Ok(db)
}

/// Opens a paceline database read-only; creates no files, not even beside a database in use.
pub(super) fn peek(path: &Path) -> Result<Connection, DatabaseError> {
    fs::metadata(path).map_err(DatabaseProblem::Io)?;
    check_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let db = match immutable_uri(path) {
        Some(uri) => Connection::open_with_flags(uri, flags)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    db.busy_timeout(BUSY_TIMEOUT)?;
    if current_version(&db)? == 0 {
        return Err(DatabaseProblem::Foreign.into());
    }
    check(&db)?;
    Ok(db)
}

/// Returns a URI that opens a database as immutable, if no process has it open, that is, if it has
/// no WAL file. Returns `None` otherwise, and for a path that a URI can't express.
pub(crate) fn immutable_uri(path: &Path) -> Option<String> {
    // The WAL file is beside the file itself, not beside a link to it.
    let path = &fs::canonicalize(path).ok()?;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if fs::exists(log).unwrap_or(true) {
        return None;
    }
    let escape = |c: char| match c {
        '%' => "%25".to_owned(),
        '?' => "%3f".to_owned(),
        '#' => "%23".to_owned(),
        c => c.to_string(),
    };
    let path: String = path.to_str()?.chars().map(escape).collect();
    Some(format!("file:{path}?immutable=1"))
}

/// Creates a missing database, which only its owner may read; SQLite would let all users read it. It
/// creates the files beside it with the same permissions.
fn create_private(path: &Path) {
    if fs::metadata(path).is_err() {
        // SQLite reports why it can't create the file.
        let _ = private_file().append(true).create(true).open(path);
    }
}

fn create_directory(path: &Path) -> Result<(), DatabaseError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), fs::create_dir_all)
        .map_err(|error| DatabaseProblem::Directory(error).into())
}

/// Rejects files that are not databases before SQLite opens them.
fn check_file(path: &Path) -> Result<(), DatabaseError> {
    match regular_file::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(DatabaseProblem::IsDirectory.into()),
        Ok(metadata) if metadata.len() == 0 => return Ok(()),
        // SQLite would read the missing part of a page as zeros.
        Ok(metadata) if metadata.len() % MIN_PAGE_SIZE != 0 && immutable_uri(path).is_some() => {
            return Err(truncated(path));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(DatabaseProblem::Io(error).into()),
    }
    let mut start = [0; MAGIC.len()];
    let mut file = fs::File::open(path).map_err(DatabaseProblem::Io)?;
    match io::Read::read_exact(&mut file, &mut start) {
        Ok(()) if start == *MAGIC => Ok(()),
        Ok(()) => Err(DatabaseProblem::NotADatabase.into()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(DatabaseProblem::NotADatabase.into())
        }
        Err(error) => Err(DatabaseProblem::Io(error).into()),
    }
}

/// Returns the problem with a file whose size is not a multiple of the page size.
fn truncated(path: &Path) -> DatabaseError {
    let is_ours = fs::read(path).is_ok_and(|bytes| bytes.starts_with(MAGIC));
    if is_ours { DatabaseProblem::Corrupt.into() } else { DatabaseProblem::NotADatabase.into() }
}

/// Returns the schema version outside a transaction; reads in one, since another process may be
/// creating the database.
fn current_version(db: &Connection) -> Result<i32, DatabaseError> {
    let tx = db.unchecked_transaction()?;
    version(&tx)
}

/// Returns the schema version of a database, 0 if it is empty. Must be called in a transaction.
fn version(db: &Connection) -> Result<i32, DatabaseError> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    let has = |name: &str| db.query_row(table, [name], |_| Ok(())).optional();
    match application {
        APPLICATION if version > VERSION => Err(DatabaseProblem::Newer(version).into()),
        APPLICATION => Ok(version),
        _ if has("daily")?.is_some() && has("requests")?.is_some() => {
            Err(DatabaseProblem::GoRatelimit.into())
        }
        0 if db
            .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?
            == 0 =>
        {
            Ok(0)
        }
        _ => Err(DatabaseProblem::Foreign.into()),
    }
}

/// Checks that every page of the database is readable and in place.
fn check(db: &Connection) -> Result<(), DatabaseError> {
    let metadata: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if metadata == "ok" { Ok(()) } else { Err(DatabaseProblem::Corrupt.into()) }
}

fn configure(db: &Connection) -> Result<(), DatabaseError> {
    let mut tries = 0;
    let mode: String = loop {
        // SQLite does not wait for this lock itself, and another process may be doing the same.
        match db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)) {
            Err(error) if is_busy(&error) && tries < MAX_TRIES => {
                tries += 1;
                thread::sleep(BUSY_TIMEOUT / MAX_TRIES);
            }
            mode => break mode?,
        }
    };
    if mode != "wal" {
        return Err(DatabaseProblem::NoWal.into());
    }
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "journal_size_limit", WAL_SIZE_LIMIT)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Migrates the schema to this version. If several processes do so concurrently, one of them makes
/// the changes.
fn migrate(db: &mut Connection) -> Result<(), DatabaseError> {
    let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let from = version(&tx)?;
    for step in MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        tx.execute_batch(step)?;
    }
    if from < VERSION {
        tx.pragma_update(None, "application_id", APPLICATION)?;
        tx.pragma_update(None, "user_version", VERSION)?;
    }
    tx.commit()?;
    Ok(())
}

/// The application id in the file header: `pace`.
const APPLICATION: i32 = 0x7061_6365;
const VERSION: i32 = 4;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const MIN_PAGE_SIZE: u64 = 512;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_TRIES: u32 = 500;
const WAL_SIZE_LIMIT: i64 = 4 << 20;

/// The migration from each version to the next.
const MIGRATIONS: [&str; VERSION as usize] = [
    // Times are nanoseconds since the Unix epoch by the row's clock. `seq` numbers all changes that
    // other owners have to read, over all tables.
    "
CREATE TABLE counter (seq INTEGER NOT NULL);
INSERT INTO counter VALUES (0);
CREATE TABLE clocks (id INTEGER PRIMARY KEY, boot TEXT, start INTEGER NOT NULL);
CREATE TABLE owners (
    id INTEGER PRIMARY KEY AUTOINCREMENT, process TEXT, clock INTEGER NOT NULL,
    dead_after INTEGER NOT NULL, seen_at INTEGER NOT NULL, seen_seq INTEGER NOT NULL,
    buried_at INTEGER
);
CREATE TABLE buckets (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, dimension TEXT NOT NULL, window_ns INTEGER NOT NULL,
    total INTEGER NOT NULL DEFAULT 0, touched INTEGER NOT NULL DEFAULT 0,
    refill INTEGER NOT NULL DEFAULT 0,
    UNIQUE (key, dimension, window_ns)
);
CREATE TABLE usage (
    seq INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, owner INTEGER NOT NULL,
    clock INTEGER NOT NULL, at INTEGER NOT NULL, amount INTEGER NOT NULL
);
CREATE INDEX usage_of_bucket ON usage (bucket, at);
CREATE TABLE held (
    owner INTEGER NOT NULL, bucket INTEGER NOT NULL, amount INTEGER NOT NULL,
    PRIMARY KEY (owner, bucket)
) WITHOUT ROWID;
CREATE TABLE buried (
    owner INTEGER NOT NULL, bucket INTEGER NOT NULL, clock INTEGER NOT NULL, at INTEGER NOT NULL,
    amount INTEGER NOT NULL, PRIMARY KEY (owner, bucket)
) WITHOUT ROWID;
CREATE TABLE cooling (
    key TEXT PRIMARY KEY, until INTEGER NOT NULL, noted_at INTEGER NOT NULL, clock INTEGER NOT NULL,
    owner INTEGER NOT NULL, seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE resets (
    key TEXT PRIMARY KEY, at INTEGER NOT NULL, clock INTEGER NOT NULL, owner INTEGER NOT NULL,
    seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE quotas (
    name TEXT PRIMARY KEY, origin TEXT NOT NULL, quota TEXT NOT NULL, owner INTEGER NOT NULL
) WITHOUT ROWID;
",
    "
CREATE TABLE learned (
    key TEXT NOT NULL, dimension TEXT NOT NULL, amount REAL NOT NULL, configured REAL,
    measured_at INTEGER NOT NULL, clock INTEGER NOT NULL, events INTEGER NOT NULL,
    PRIMARY KEY (key, dimension)
) WITHOUT ROWID;
",
    "
CREATE TABLE utilization (
    key TEXT NOT NULL, window TEXT NOT NULL, used REAL NOT NULL, resets_at INTEGER,
    observed_at INTEGER NOT NULL, clock INTEGER NOT NULL, PRIMARY KEY (key, window)
) WITHOUT ROWID;
",
    "ALTER TABLE cooling ADD COLUMN kind TEXT;",
];

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn concurrent_creation_of_a_database_succeeds() {
        for _ in 0..100 {
            let folder = tempfile::tempdir().unwrap();
            let (path, start) = (folder.path().join("state.db"), Barrier::new(4));
            let open = || {
                start.wait();
                open(&path).map(drop)
            };
            std::thread::scope(|scope| {
                let all = [(); 4].map(|()| scope.spawn(open));
                all.into_iter().for_each(|opened| opened.join().unwrap().unwrap());
            });
        }
    }
}
