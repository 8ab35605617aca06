//! The engine through its public functions.

mod debt;
mod fixed_window;
mod grid_window;
mod mismatch;
mod p1;
mod p2;
mod p3;
mod p4;
mod p6;
mod reference;
mod saved;
mod schedule;
mod sliding_window;
mod token_bucket;
mod total;
mod world;
mod zone_calendars;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{Bucket, Rule};
use paceline_limiter::quota::{Algorithm, Margin, Quota, SettleAt};

/// One second in nanoseconds.
const S: u64 = 1_000_000_000;

/// Returns the time this many nanoseconds after the Unix epoch.
fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn rules(quota: &Quota, algorithm: Algorithm, margin: Margin, settle: SettleAt) -> Vec<Rule> {
    quota.limits().iter().map(|l| Rule::new(l, algorithm, margin, settle)).collect()
}

fn fresh(rules: &[Rule]) -> Vec<Bucket> {
    rules.iter().map(Bucket::new).collect()
}
