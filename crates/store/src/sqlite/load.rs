use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{BucketSnapshot, KeySnapshot, NamedQuota, RefusalKind};
use paceline_limiter::quota::Key;
use paceline_limiter::seam;
use rusqlite::Connection;

use super::bucket_id::BucketId;
use super::compact::kept_for;
use super::database_error::{DatabaseError, DatabaseProblem};
use super::learned::learned;
use super::net_usage::net_usage;
use super::owner_transaction::{clocks, kind, time};
use super::quota_text;
use super::utilization::utilization;
use crate::State;
use crate::clock_origin::ClockOrigin;

/// Reads the state of a database at time `now`, without held amounts.
pub(super) fn state(
    db: &Connection,
    origin: &ClockOrigin,
    now: Timestamp,
) -> Result<State, DatabaseError> {
    let clocks = clocks(db)?;
    let mut keys: BTreeMap<Key, KeySnapshot> = BTreeMap::new();
    for (name, (refill, taken)) in taken(db, &clocks, origin, now)? {
        let net_usage = net_usage(taken, name.window.as_nanos());
        if !net_usage.taken.is_empty() {
            let mut bucket = BucketSnapshot::new(name.dimension, name.window, net_usage);
            bucket.refill = refill;
            entry(&mut keys, name.key).buckets.push(bucket);
        }
    }
    for (key, until, kind) in cooling(db, &clocks, origin, now)? {
        let key = entry(&mut keys, key.into());
        (key.cooling_until, key.cooling_kind) = (Some(until), kind);
    }
    for (key, limit) in learned(db, &clocks, origin, now)? {
        if seam::is_limit_current(&limit, now) {
            entry(&mut keys, key.into()).learned.push(limit);
        }
    }
    for (key, window) in utilization(db, &clocks, origin, now)? {
        if seam::is_utilization_current(&window, now) {
            entry(&mut keys, key.into()).utilization.push(window);
        }
    }
    Ok(State { quotas: quotas(db)?, keys: keys.into_values().collect() })
}

pub(super) fn entry(keys: &mut BTreeMap<Key, KeySnapshot>, key: Key) -> &mut KeySnapshot {
    keys.entry(key.clone()).or_insert_with(|| KeySnapshot::new(key, Vec::new()))
}

/// The refill of a bucket per window, and its usage.
type BucketTaken = (u64, Vec<(Timestamp, i64)>);

fn taken(
    db: &Connection,
    clocks: &BTreeMap<i64, ClockOrigin>,
    origin: &ClockOrigin,
    now: Timestamp,
) -> Result<BTreeMap<BucketId, BucketTaken>, DatabaseError> {
    let sql = "SELECT at, usage.clock, amount, key, dimension, window_ns, refill \
               FROM usage JOIN buckets ON id = bucket";
    let mut rows = db.prepare(sql)?;
    let mut rows = rows.query([])?;
    let mut taken: BTreeMap<BucketId, BucketTaken> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let name = BucketId::read(row, 3)?;
        let clock = clocks.get(&row.get(1)?).unwrap_or(origin);
        let at = origin.read(time(row, 0)?, clock, now);
        let refill: u64 = row.get(6)?;
        if refill > 0 || seam::nanos_since(now, at) <= kept_for(name.window.as_nanos()) {
            let (of_bucket, taken) = taken.entry(name).or_default();
            *of_bucket = refill;
            taken.push((at, row.get(2)?));
        }
    }
    Ok(taken)
}

/// Returns the keys that cool down, and the ends of their cool-downs, with the kinds of their refusals.
fn cooling(
    db: &Connection,
    clocks: &BTreeMap<i64, ClockOrigin>,
    origin: &ClockOrigin,
    now: Timestamp,
) -> Result<Vec<(String, Timestamp, Option<RefusalKind>)>, DatabaseError> {
    // A database of an older version, opened to read, states no kinds.
    let stored_kind = if db.column_exists(None, "cooling", "kind")? { "kind" } else { "NULL" };
    let sql = format!("SELECT key, until, noted_at, clock, {stored_kind} FROM cooling");
    let mut rows = db.prepare(&sql)?;
    let mut rows = rows.query([])?;
    let mut cooling = Vec::new();
    while let Some(row) = rows.next()? {
        let clock = clocks.get(&row.get(3)?).unwrap_or(origin);
        let until = origin.read_until(time(row, 1)?, time(row, 2)?, clock, now);
        if until > now {
            cooling.push((row.get(0)?, until, kind(row, 4)?));
        }
    }
    Ok(cooling)
}

/// Returns the quotas, sorted by name.
pub(super) fn quotas(db: &Connection) -> Result<Vec<NamedQuota>, DatabaseError> {
    let mut rows = db.prepare("SELECT name, origin, quota FROM quotas ORDER BY name")?;
    let mut rows = rows.query([])?;
    let mut quotas = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let origin = quota_text::read_origin(row.get_ref(1)?.as_str().unwrap_or_default());
        let quota = quota_text::read(row.get_ref(2)?.as_str().unwrap_or_default());
        match (origin, quota) {
            (Some(origin), Some(quota)) => quotas.push(NamedQuota::new(name, quota, origin)),
            _ => return Err(DatabaseProblem::Quota(name).into()),
        }
    }
    Ok(quotas)
}
