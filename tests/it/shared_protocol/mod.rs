//! The protocol of leases and tickets as a model, of which all states are searched. Variants without one of
//! its rules show what the rule is for, and that the search finds violations.

mod model;
mod search;

use model::{EXCEEDED, NOT_SERVED, Protocol};
use search::{Found, search};

use tollgate_testing::full::full_or;

const PROTOCOL: Protocol = Protocol {
    ticket_ticks: 2,
    faults: 1,
    has_holder: true,
    keeps_amounts: true,
    counts_from_call: true,
    watched: 0,
    keeps_place: true,
};

/// The protocol without leases, which has fewer states.
const TICKETS: Protocol = Protocol { has_holder: false, ..PROTOCOL };

#[track_caller]
fn assert_violates(protocol: Protocol, expected: &str) {
    match search(&protocol) {
        Found::Violation(property, steps) => {
            println!("{property}: violated by {steps:?}");
            assert_eq!(property, expected);
        }
        Found::Nothing(states) => panic!("{states} states, and no violation"),
    }
}

#[test]
fn protocol_never_exceeds_limit_and_serves_live_waiters() {
    let cases: &[_] = full_or(&[(0, 1), (1, 1), (0, 2), (1, 2)], &[(0, 1)]);
    for &(watched, faults) in cases {
        match search(&Protocol { watched, faults, ..PROTOCOL }) {
            Found::Nothing(states) => {
                println!("process {watched}, {faults} faults: {states} states");
                assert!(states > 100_000, "{states} states are too few for all faults");
            }
            Found::Violation(property, steps) => panic!("{property}: violated by {steps:?}"),
        }
    }
}

#[test]
fn ticket_that_outlives_its_owner_stalls_live_waiters() {
    assert_violates(Protocol { ticket_ticks: 30, ..TICKETS }, NOT_SERVED);
}

#[test]
fn amounts_that_are_not_kept_starve_big_request() {
    assert_violates(Protocol { keeps_amounts: false, ..TICKETS }, NOT_SERVED);
}

#[test]
fn renewal_that_loses_its_place_starves_big_request() {
    assert_violates(Protocol { keeps_place: false, ..TICKETS }, NOT_SERVED);
}

#[test]
fn lease_counted_from_its_answer_exceeds_limit() {
    assert_violates(Protocol { counts_from_call: false, ..PROTOCOL }, EXCEEDED);
}
