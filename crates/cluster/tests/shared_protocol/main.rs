//! The protocols of leases and tickets, of the turns of tickets, and of reports to a store without data, as models of which
//! all states are searched. Variants without one of its rules show what the rule is for, and that the search finds
//! violations.

mod loss;
mod model;
mod search;
mod turns;

use loss::{COUNTED_TWICE, Reports};
use model::{EXCEEDED, NOT_SERVED, Protocol};
use search::{Found, Model, search};
use turns::{STARVED, Turns, UNFAIR};

use paceline_testing::full::full_or;

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
fn assert_violates(protocol: &impl Model, expected: &str) {
    match search(protocol) {
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
    assert_violates(&Protocol { ticket_ticks: 30, ..TICKETS }, NOT_SERVED);
}

#[test]
fn amounts_that_are_not_kept_starve_big_request() {
    assert_violates(&Protocol { keeps_amounts: false, ..TICKETS }, NOT_SERVED);
}

#[test]
fn renewal_that_loses_its_place_starves_big_request() {
    assert_violates(&Protocol { keeps_place: false, ..TICKETS }, NOT_SERVED);
}

#[test]
fn lease_counted_from_its_answer_exceeds_limit() {
    assert_violates(&Protocol { counts_from_call: false, ..PROTOCOL }, EXCEEDED);
}

const REPORTS: Reports =
    Reports { waits_for_all: true, restores_held: true, takes_latest: true, keeps_view: true };

#[test]
fn reports_to_a_store_without_data_exceed_no_limit_and_count_once() {
    match search(&REPORTS) {
        Found::Nothing(states) => assert!(states > 10_000, "{states} states are too few"),
        Found::Violation(property, steps) => panic!("{property}: violated by {steps:?}"),
    }
}

#[test]
fn process_that_decides_before_all_reports_exceeds_limit() {
    assert_violates(&Reports { waits_for_all: false, ..REPORTS }, EXCEEDED);
}

#[test]
fn requests_in_flight_that_are_not_restored_exceed_limit() {
    assert_violates(&Reports { restores_held: false, ..REPORTS }, EXCEEDED);
}

#[test]
fn views_that_are_added_to_each_other_count_twice() {
    assert_violates(&Reports { takes_latest: false, ..REPORTS }, COUNTED_TWICE);
}

#[test]
fn view_of_a_store_without_all_reports_exceeds_limit_after_the_next_loss() {
    assert_violates(&Reports { keeps_view: false, ..REPORTS }, EXCEEDED);
}

const TURNS: Turns =
    Turns { remembers: true, serves_starved: true, counts_service: true, starts_now: true };

#[test]
fn turns_serve_lower_priorities_and_all_flows() {
    match search(&TURNS) {
        Found::Nothing(states) => assert!(states > 1_000, "{states} states are too few"),
        Found::Violation(property, steps) => panic!("{property}: violated by {steps:?}"),
    }
}

#[test]
fn priority_that_is_forgotten_when_its_request_gives_up_is_starved() {
    assert_violates(&Turns { remembers: false, ..TURNS }, STARVED);
}

#[test]
fn lower_priority_without_turns_is_starved() {
    assert_violates(&Turns { serves_starved: false, ..TURNS }, STARVED);
}

#[test]
fn flow_of_large_requests_gets_more_if_service_does_not_count() {
    assert_violates(&Turns { counts_service: false, ..TURNS }, UNFAIR);
}

#[test]
fn flow_that_returns_without_a_new_start_takes_all_turns() {
    assert_violates(&Turns { starts_now: false, ..TURNS }, UNFAIR);
}
