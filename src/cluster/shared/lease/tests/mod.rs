use std::sync::Arc;

use super::{Ledger, Room};
use crate::cluster::shared::script::Id;
use crate::engine::Rule;
use crate::quota::{Algorithm, Cost, Margin, Quota, SettleAt};

mod model;
mod reference;
mod server;
mod world;

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const LEASE: u64 = SECOND;
const MINUTE: u64 = 60 * SECOND;

fn rules(quota: &Quota, algorithm: Algorithm, settle: SettleAt) -> Arc<[Rule]> {
    let rule = |limit| Rule::new(limit, algorithm, Margin::default(), settle);
    quota.limits().iter().map(rule).collect()
}

/// A ledger that holds so much since `now`.
fn holding(rules: &Arc<[Rule]>, amount: u64, now: u64) -> Ledger {
    let mut ledger = Ledger::new(Arc::clone(rules), (Id([0; 16]), 1), LEASE);
    ledger.ask(Some(&cost(1)), &Room::default(), now);
    ledger.granted(&[amount]);
    ledger
}

fn cost(tokens: u64) -> Cost {
    Cost::new().tokens(tokens)
}

fn tokens(settle: SettleAt) -> Arc<[Rule]> {
    rules(&Quota::new().tpm(6_000), Algorithm::TokenBucket, settle)
}

#[test]
fn nothing_is_admitted_from_its_end_on() {
    let rules = tokens(SettleAt::End);
    let mut ledger = holding(&rules, 10, MINUTE);
    assert!(ledger.try_take(&rules, &cost(1), MINUTE + LEASE * 9 / 10).is_some());
    assert!(ledger.try_take(&rules, &cost(1), MINUTE + LEASE).is_none());
}

#[test]
fn what_a_refused_question_has_told_is_not_told_again() {
    let rules = tokens(SettleAt::End);
    let mut ledger = holding(&rules, 10, MINUTE);
    let taken = ledger.try_take(&rules, &cost(8), MINUTE).unwrap();
    ledger.settle(taken, &cost(8), &cost(8));
    assert_eq!(ledger.ask(Some(&cost(5)), &Room::default(), MINUTE).used[..], [8]);
    ledger.refused(MINUTE);
    assert!(ledger.is_empty());
    assert_eq!(ledger.close().used[..], [0]);
}

#[test]
fn more_than_was_reserved_is_told_as_it_is() {
    let rules = tokens(SettleAt::End);
    let mut ledger = holding(&rules, 10, MINUTE);
    let taken = ledger.try_take(&rules, &cost(10), MINUTE).unwrap();
    ledger.settle(taken, &cost(10), &cost(25));
    assert_eq!(ledger.ask(None, &Room::default(), MINUTE + LEASE / 3).used[..], [25]);
}

#[test]
fn less_than_was_reserved_is_free_again_until_it_is_told() {
    let rules = tokens(SettleAt::Send);
    let mut ledger = holding(&rules, 10, MINUTE);
    let early = ledger.try_take(&rules, &cost(5), MINUTE).unwrap();
    ledger.settle(early, &cost(5), &cost(2));
    let late = ledger.try_take(&rules, &cost(8), MINUTE).unwrap();
    assert_eq!(ledger.ask(None, &Room::default(), MINUTE + LEASE / 3).used[..], [10]);
    ledger.granted(&[0]);
    ledger.release(late, &cost(8));
    assert!(ledger.try_take(&rules, &cost(1), MINUTE + LEASE / 3).is_none());
}

#[test]
fn what_a_lapsed_lease_had_held_is_not_told_again() {
    let rules = tokens(SettleAt::End);
    let mut ledger = holding(&rules, 10, MINUTE);
    let in_flight = ledger.try_take(&rules, &cost(4), MINUTE).unwrap();
    let ended = ledger.try_take(&rules, &cost(6), MINUTE).unwrap();
    ledger.settle(ended, &cost(6), &cost(9));
    ledger.unknown();
    assert!(ledger.try_take(&rules, &cost(1), MINUTE).is_none());
    ledger.settle(in_flight, &cost(4), &cost(5));
    assert_eq!(ledger.ask(None, &Room::default(), MINUTE + LEASE).used[..], [3 + 1]);
}

#[test]
fn nothing_is_admitted_while_a_window_is_closed() {
    let rules = rules(&Quota::new().tpm(6_000), Algorithm::ClockWindow, SettleAt::Send);
    let mut ledger = holding(&rules, 10, 2 * MINUTE - LEASE * 3 / 4);
    assert!(ledger.try_take(&rules, &cost(1), 2 * MINUTE - LEASE * 6 / 10).is_some());
    assert!(ledger.try_take(&rules, &cost(1), 2 * MINUTE - LEASE / 10).is_none());
}

#[test]
fn a_lease_is_used_by_the_rules_alone_that_it_was_taken_by() {
    let (before, after) = (tokens(SettleAt::End), tokens(SettleAt::Send));
    let mut ledger = holding(&before, 10, MINUTE);
    assert!(ledger.try_take(&after, &cost(1), MINUTE).is_none());
    assert!(ledger.try_take(&tokens(SettleAt::End), &cost(1), MINUTE).is_some());
}

#[test]
fn at_the_end_what_is_in_flight_counts_as_it_was_reserved() {
    let rules = tokens(SettleAt::End);
    let mut ledger = holding(&rules, 10, MINUTE);
    let taken = ledger.try_take(&rules, &cost(4), MINUTE).unwrap();
    let ask = ledger.close();
    assert_eq!((ask.used[..].to_vec(), ledger.is_empty()), (vec![4], true));
    ledger.settle(taken, &cost(4), &cost(2));
    assert!(ledger.is_empty());
}

#[test]
fn windows_from_the_first_use_and_limits_in_flight_are_not_leased() {
    let serves =
        |quota: &Quota, algorithm| Ledger::serves(&rules(quota, algorithm, SettleAt::Send));
    assert!(serves(&Quota::new().rpm(5), Algorithm::TokenBucket));
    assert!(serves(&Quota::new().rpm(5), Algorithm::SlidingWindow));
    assert!(!serves(&Quota::new().rpm(5), Algorithm::FixedWindow));
    assert!(!serves(&Quota::new().rpm(5).concurrency(2), Algorithm::SlidingWindow));
}
