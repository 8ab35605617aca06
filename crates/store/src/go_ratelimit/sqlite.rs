use std::collections::BTreeMap;
use std::path::Path;

use paceline_limiter::Timestamp;
use rusqlite::{Connection, OpenFlags, Row};

use super::imported::{ImportedState, ModelLimits, ModelUsage};
use crate::StoreError;
use crate::sqlite::immutable_uri;

/// Returns whether a database has the tables of go-ratelimit.
pub(crate) fn is_database(path: &Path) -> Result<bool, StoreError> {
    let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' \
               AND name IN ('quotas', 'requests', 'tokens', 'daily')";
    let count = open(path).and_then(|db| db.query_row(sql, [], |row| row.get::<_, u32>(0)));
    count.map(|count| count == 4).map_err(|error| unreadable(path, &error))
}

/// Reads the database at `path`, at time `now`.
pub(crate) fn read_database(path: &Path, now: Timestamp) -> Result<ImportedState, StoreError> {
    let read = || {
        let db = open(path)?;
        // Read all tables in one transaction.
        let tx = db.unchecked_transaction()?;
        Ok((quotas(&tx)?, models(&tx)?))
    };
    let (quotas, models) = read().map_err(|error| unreadable(path, &error))?;
    let mut by_model = BTreeMap::new();
    for (name, limits) in quotas {
        let [rpm, tpm, rpd] = limits.map(u64::try_from);
        let (Ok(rpm), Ok(tpm), Ok(rpd)) = (rpm, tpm, rpd) else {
            let [rpm, tpm, rpd] = limits;
            let reason = format!(
                "quota {name:?}: negative limit (max_rpm {rpm}, max_tpm {tpm}, max_rpd {rpd}); use a positive number, or 0 for unlimited"
            );
            return Err(StoreError::new(path, reason));
        };
        by_model.insert(name, ModelLimits { rpm, tpm, rpd });
    }
    Ok(ImportedState::new(by_model, models, now))
}

/// Opens a database read-only. If no process has it open, SQLite creates no files beside it.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    match immutable_uri(path) {
        Some(uri) => Connection::open_with_flags(uri, flags),
        None => Connection::open_with_flags(path, flags),
    }
}

fn quotas(db: &Connection) -> rusqlite::Result<Vec<(String, [i64; 3])>> {
    let mut rows = db.prepare("SELECT model, max_rpm, max_tpm, max_rpd FROM quotas")?;
    let quota = |row: &Row<'_>| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?]));
    rows.query_map([], quota)?.collect()
}

fn models(db: &Connection) -> rusqlite::Result<BTreeMap<String, ModelUsage>> {
    let mut models: BTreeMap<String, ModelUsage> = BTreeMap::new();
    for_each_row(db, "SELECT model, ts, 1 FROM requests", |model, at, _| {
        models.entry(model).or_default().requests.push(at);
    })?;
    for_each_row(db, "SELECT model, ts, count FROM tokens", |model, at, count| {
        models.entry(model).or_default().tokens.push((at, count));
    })?;
    for_each_row(db, "SELECT model, day_start, day_count FROM daily", |model, at, count| {
        models.entry(model).or_default().day = Some((at, count));
    })?;
    Ok(models)
}

/// Calls `visit` with the model, time and amount of each row.
fn for_each_row(
    db: &Connection,
    sql: &str,
    mut visit: impl FnMut(String, i128, i64),
) -> rusqlite::Result<()> {
    let mut rows = db.prepare(sql)?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        visit(row.get(0)?, i128::from(row.get::<_, i64>(1)?), row.get(2)?);
    }
    Ok(())
}

fn unreadable(path: &Path, error: &rusqlite::Error) -> StoreError {
    StoreError::new(path, format!("cannot be read: {error}"))
}
