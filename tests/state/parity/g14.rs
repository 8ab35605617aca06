//! g14: state is migrated from YAML to SQLite and back, repeatedly.

use paceline::Timestamp;
use std::fs;
use std::path::Path;

use paceline::limiter::{Limiter, ManualClock};
use paceline::store::{self, FileKind, MigrateOptions, MigrateSummary, Sqlite, State, Store, Yaml};
use paceline_limiter::seam;

use super::rig::{builder, used};

const FILE: &str = include_str!("../../../crates/store/tests/store/fixtures/ratelimits.yaml");
const SCHEMA: &str = include_str!("../../../crates/store/tests/store/fixtures/ratelimits.sql");
const NOW: Timestamp = ManualClock::START;
const MODEL: &str = "gemini-3-pro-preview";

fn migrate(from: &Path, to: &Path) -> MigrateSummary {
    store::migrate(from, to, MigrateOptions::default(), NOW, None).unwrap()
}

/// Returns a limiter that continues with a state.
fn limiter(state: &State) -> Limiter {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    seam::restore_quotas(&limiter, &state.quotas);
    limiter.state().absorb(&state.keys);
    limiter
}

#[test]
fn g14_limiter_continues_with_state_of_go_ratelimit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("ratelimits.yaml"), FILE).unwrap();
    migrate(&at("ratelimits.yaml"), &at("state.db"));
    let state = Sqlite::new(at("state.db")).open(NOW).unwrap();
    let limiter = limiter(&state);
    assert_eq!(used(&limiter, MODEL), [2, 2_200, 42], "entries older than a minute have expired");
    let amounts = limiter.stats(MODEL).limits.iter().map(|l| l.limit).collect::<Vec<_>>();
    assert_eq!(amounts, [150, 1_000_000, 1_000]);
    assert!(limiter.stats("gemini-2.0-flash-lite").limits.is_empty(), "0 is unlimited");
}

#[test]
fn g14_yaml_to_sqlite_repeated_gives_the_same_state() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("ratelimits.yaml"), FILE).unwrap();
    let mut states = Vec::new();
    for _ in 0..3 {
        migrate(&at("ratelimits.yaml"), &at("state.db"));
        states.push(Sqlite::peek(&at("state.db"), NOW, None).unwrap());
    }
    assert!(states.iter().all(|state| *state == states[0] && state.keys.len() == 1));
}

#[test]
fn g14_migrates_both_ways_and_from_go_database() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("ratelimits.yaml"), FILE).unwrap();
    migrate(&at("ratelimits.yaml"), &at("a.yaml"));
    migrate(&at("a.yaml"), &at("b.db"));
    migrate(&at("b.db"), &at("c.yaml"));
    let first = Yaml::peek(&at("a.yaml"), NOW, None).unwrap();
    assert_eq!(Yaml::peek(&at("c.yaml"), NOW, None).unwrap(), first);
    let db = rusqlite::Connection::open(at("ratelimits.db")).unwrap();
    db.execute_batch(SCHEMA).unwrap();
    db.execute_batch("INSERT INTO quotas VALUES ('m', 5, 0, 0)").unwrap();
    db.close().unwrap();
    assert_eq!(migrate(&at("ratelimits.db"), &at("d.yaml")).from, FileKind::GoSqlite);
    assert_eq!(Yaml::peek(&at("d.yaml"), NOW, None).unwrap().quotas[0].name, "m");
}
