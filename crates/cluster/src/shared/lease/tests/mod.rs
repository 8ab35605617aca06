use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Cost, Margin, Quota, SettleAt};

use super::{KeyLease, LeaseLimits};
use crate::shared::script::Id;

mod model;
mod reference;
mod server;
mod world;

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const LEASE: u64 = SECOND;
const MINUTE: u64 = 60 * SECOND;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn rules(quota: &Quota, algorithm: Algorithm, settle: SettleAt) -> Arc<[Rule]> {
    let rule = |limit| Rule::new(limit, algorithm, Margin::default(), settle);
    quota.limits().iter().map(rule).collect()
}

/// Returns a lease that holds `amount` since `now`.
fn lease_with(rules: &Arc<[Rule]>, amount: u64, now: u64) -> KeyLease {
    let mut lease = KeyLease::new(Arc::clone(rules), Id([0; 16]), 1, Duration::from_nanos(LEASE));
    lease.prepare_call(Some(&cost(1)), &LeaseLimits::default(), at(now));
    lease.on_granted(&[amount]);
    lease
}

fn cost(tokens: u64) -> Cost {
    Cost::new().tokens(tokens)
}

fn tokens(settle: SettleAt) -> Arc<[Rule]> {
    rules(&Quota::new().tpm(6_000), Algorithm::TokenBucket, settle)
}

#[test]
fn expired_lease_admits_no_request() {
    let rules = tokens(SettleAt::End);
    let mut lease = lease_with(&rules, 10, MINUTE);
    assert!(lease.try_take(&rules, &cost(1), at(MINUTE + LEASE * 9 / 10)).is_some());
    assert!(lease.try_take(&rules, &cost(1), at(MINUTE + LEASE)).is_none());
}

#[test]
fn usage_reported_with_a_refused_call_is_not_repeated() {
    let rules = tokens(SettleAt::End);
    let mut lease = lease_with(&rules, 10, MINUTE);
    let taken = lease.try_take(&rules, &cost(8), at(MINUTE)).unwrap();
    lease.settle(taken, &cost(8), &cost(8));
    assert_eq!(
        lease.prepare_call(Some(&cost(5)), &LeaseLimits::default(), at(MINUTE)).used[..],
        [8]
    );
    lease.on_refused(at(MINUTE));
    assert!(lease.is_empty());
    assert_eq!(lease.close().used[..], [0]);
}

#[test]
fn usage_above_the_reservation_is_reported() {
    let rules = tokens(SettleAt::End);
    let mut lease = lease_with(&rules, 10, MINUTE);
    let taken = lease.try_take(&rules, &cost(10), at(MINUTE)).unwrap();
    lease.settle(taken, &cost(10), &cost(25));
    assert_eq!(
        lease.prepare_call(None, &LeaseLimits::default(), at(MINUTE + LEASE / 3)).used[..],
        [25]
    );
}

#[test]
fn unused_reservation_is_free_until_reported() {
    let rules = tokens(SettleAt::Send);
    let mut lease = lease_with(&rules, 10, MINUTE);
    let early = lease.try_take(&rules, &cost(5), at(MINUTE)).unwrap();
    lease.settle(early, &cost(5), &cost(2));
    let late = lease.try_take(&rules, &cost(8), at(MINUTE)).unwrap();
    assert_eq!(
        lease.prepare_call(None, &LeaseLimits::default(), at(MINUTE + LEASE / 3)).used[..],
        [10]
    );
    lease.on_granted(&[0]);
    lease.release(late, &cost(8));
    assert!(lease.try_take(&rules, &cost(1), at(MINUTE + LEASE / 3)).is_none());
}

#[test]
fn amount_held_by_an_expired_lease_is_not_reported_again() {
    let rules = tokens(SettleAt::End);
    let mut lease = lease_with(&rules, 10, MINUTE);
    let in_flight = lease.try_take(&rules, &cost(4), at(MINUTE)).unwrap();
    let ended = lease.try_take(&rules, &cost(6), at(MINUTE)).unwrap();
    lease.settle(ended, &cost(6), &cost(9));
    lease.on_unknown();
    assert!(lease.try_take(&rules, &cost(1), at(MINUTE)).is_none());
    lease.settle(in_flight, &cost(4), &cost(5));
    assert_eq!(
        lease.prepare_call(None, &LeaseLimits::default(), at(MINUTE + LEASE)).used[..],
        [3 + 1]
    );
}

#[test]
fn closed_window_admits_no_request() {
    let rules = rules(&Quota::new().tpm(6_000), Algorithm::ClockWindow, SettleAt::Send);
    let mut lease = lease_with(&rules, 10, 2 * MINUTE - LEASE * 3 / 4);
    assert!(lease.try_take(&rules, &cost(1), at(2 * MINUTE - LEASE * 6 / 10)).is_some());
    assert!(lease.try_take(&rules, &cost(1), at(2 * MINUTE - LEASE / 10)).is_none());
}

#[test]
fn lease_admits_only_under_the_same_rules() {
    let (before, after) = (tokens(SettleAt::End), tokens(SettleAt::Send));
    let mut lease = lease_with(&before, 10, MINUTE);
    assert!(lease.try_take(&after, &cost(1), at(MINUTE)).is_none());
    assert!(lease.try_take(&tokens(SettleAt::End), &cost(1), at(MINUTE)).is_some());
}

#[test]
fn close_counts_requests_in_flight_as_reserved() {
    let rules = tokens(SettleAt::End);
    let mut lease = lease_with(&rules, 10, MINUTE);
    let taken = lease.try_take(&rules, &cost(4), at(MINUTE)).unwrap();
    let call = lease.close();
    assert_eq!((call.used[..].to_vec(), lease.is_empty()), (vec![4], true));
    lease.settle(taken, &cost(4), &cost(2));
    assert!(lease.is_empty());
}

#[test]
fn anchored_windows_and_concurrency_are_not_leased() {
    let supports =
        |quota: &Quota, algorithm| KeyLease::supports(&rules(quota, algorithm, SettleAt::Send));
    assert!(supports(&Quota::new().rpm(5), Algorithm::TokenBucket));
    assert!(supports(&Quota::new().rpm(5), Algorithm::SlidingWindow));
    assert!(!supports(&Quota::new().rpm(5), Algorithm::FixedWindow));
    assert!(!supports(&Quota::new().rpm(5).concurrency(2), Algorithm::SlidingWindow));
}
