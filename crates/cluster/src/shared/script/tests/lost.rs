use paceline_limiter::quota::{Algorithm, Dimension};

use super::super::{Operation, Outcome, RetryAfter, View};
use super::fixture::{ALL_ALGORITHMS, Fixture, RESERVE, S, START, refused};

fn flush(fixture: &mut Fixture) {
    redis::cmd("FLUSHALL").exec(fixture.server.connection()).unwrap();
}

fn without_amounts(view: &View) -> View {
    View { buckets: [].as_slice().into(), ..view.clone() }
}

#[test]
fn empty_server_restores_known_usage() {
    for algorithm in ALGORITHMS {
        let mut fixture = Fixture::with(&[(Dimension::Tokens, 100, algorithm)]);
        fixture.reserve(1, 50);
        fixture.settle(1, 50);
        fixture.reserve(2, 30);
        let mut known = fixture.read_state();
        assert_eq!(known.buckets[0], (50, 30));
        known.reservations = vec![fixture.reservation(2, &[30])];
        flush(&mut fixture);
        fixture.now += 10 * S;
        fixture.view = Some(without_amounts(&known));
        assert_eq!(fixture.reserve(3, 1), Outcome::Lost);
        fixture.view = Some(known);
        assert_eq!(fixture.reserve(3, 1), Outcome::Done);
        let refilled = if algorithm == Algorithm::TokenBucket { 10 } else { 0 };
        assert_eq!(fixture.level(), (50 - refilled, 31), "{algorithm:?}");
        fixture.view = None;
        assert_eq!(fixture.settle(2, 5), Outcome::Done);
        assert_eq!(fixture.level(), (55 - refilled, 1), "{algorithm:?}");
    }
}

#[test]
fn usage_restored_by_two_processes_counts_once() {
    for algorithm in ALGORITHMS {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 100, algorithm)]);
        fixture.reserve(1, 50);
        let first = fixture.read_state();
        fixture.now += 1;
        fixture.reserve(2, 30);
        let second = fixture.read_state();
        flush(&mut fixture);
        fixture.now += 1;
        for (id, known, used) in [(3, &first, 50), (4, &second, 80), (5, &second, 80)] {
            fixture.view = Some(known.clone());
            assert_eq!(fixture.reserve(id, 1), Outcome::Done);
            assert_eq!(fixture.level(), (used + u64::from(id) - 2, 0), "{algorithm:?}");
        }
    }
}

#[test]
fn key_with_expired_usage_starts_fresh() {
    let mut fixture = Fixture::requests();
    fixture.reserve(1, 100);
    let known = fixture.read_state();
    flush(&mut fixture);
    fixture.now += 100 * S;
    fixture.view = Some(known);
    let response = fixture.call(RESERVE, 2, &[100]);
    assert_eq!((response.outcome, response.views[0].created_at), (Outcome::Done, fixture.now));
    assert_eq!(fixture.reserve(3, 1), refused(RetryAfter::In(S)));
}

#[test]
fn lost_reservation_in_flight_is_restored_by_each_process_once() {
    for algorithm in ALGORITHMS {
        let mut fixture = Fixture::with(&[
            (Dimension::Concurrency, 2, Algorithm::SlidingWindow),
            (Dimension::Tokens, 100, algorithm),
        ]);
        for (id, tokens) in [(1, 60), (2, 20)] {
            assert_eq!(fixture.call(RESERVE, id, &[1, tokens]).outcome, Outcome::Done);
        }
        let known = fixture.read_state();
        let reports = [(1, 60), (2, 20)].map(|(id, tokens)| {
            let reservations = vec![fixture.reservation(id, &[1, tokens])];
            (id, View { reservations, ..known.clone() })
        });
        flush(&mut fixture);
        fixture.now += 1;
        for (process, report) in reports.iter().chain(&reports) {
            fixture.view = Some(report.clone());
            fixture.call(Operation::Read, *process, &[0, 0]);
        }
        assert_eq!(fixture.read_state().buckets[..], [(0, 2), (0, 80)], "{algorithm:?}");
        fixture.view = None;
        assert_eq!(fixture.call(RESERVE, 3, &[1, 1]).outcome, refused(RetryAfter::Unknown));
        let settle = Operation::Settle { unsure: false };
        assert_eq!(fixture.call(settle, 1, &[1, 5]).outcome, Outcome::Done);
        // Its process has reported: a copy of the report doesn't restore it.
        fixture.view = Some(reports[0].1.clone());
        assert_eq!(fixture.call(settle, 1, &[1, 5]).outcome, Outcome::Unknown);
        assert_eq!(fixture.read_state().buckets[..], [(0, 1), (5, 20)], "{algorithm:?}");
    }
}

#[test]
fn restored_reservation_expires_and_stays_ended() {
    let mut fixture = Fixture::with(&[(Dimension::Concurrency, 1, Algorithm::SlidingWindow)]);
    assert_eq!(fixture.call(renew(true), 1, &[1]).outcome, Outcome::Done);
    assert_eq!(fixture.reserve(2, 1), refused(RetryAfter::Unknown));
    fixture.now += 10 * S;
    assert_eq!(fixture.reserve(2, 1), Outcome::Done);
    fixture.call(Operation::Settle { unsure: true }, 2, &[1]);
    assert_eq!(fixture.call(renew(true), 2, &[1]).outcome, Outcome::Unknown);
    assert_eq!(fixture.level(), (0, 0));
}

fn renew(restores: bool) -> Operation {
    Operation::Renew { ttl: 10 * S, restores }
}

const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::ClockWindow];

#[test]
fn restored_window_goes_on_where_it_was() {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 320, algorithm)]);
        fixture.reserve(1, 100);
        fixture.now += 100 * S;
        fixture.reserve(2, 220);
        let known = read_uses(&mut fixture);
        flush(&mut fixture);
        fixture.now += 20 * S;
        fixture.view = Some(known);
        // The time until the first amount returns, as without the loss.
        let until = START + 320 * S - fixture.now;
        let Outcome::Refused { wait: RetryAfter::In(wait), .. } = fixture.reserve(3, 1) else {
            panic!("{algorithm:?}: not refused");
        };
        assert_eq!(wait, until, "{algorithm:?}");
        fixture.now += wait;
        let amount = if algorithm == Algorithm::SlidingWindow { 100 } else { 320 };
        assert_eq!(fixture.reserve(4, amount), Outcome::Done, "{algorithm:?}");
        assert!(matches!(fixture.reserve(5, 1), Outcome::Refused { .. }), "{algorithm:?}");
    }
}

#[test]
fn uses_restored_by_several_processes_count_once() {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 320, algorithm)]);
        let mut known = Vec::new();
        for id in 1..=5 {
            fixture.now += 7 * S;
            fixture.reserve(id, 50);
            known.push(read_uses(&mut fixture));
        }
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 4, 1]] {
            flush(&mut fixture);
            fixture.now += 1;
            for process in order {
                fixture.view = Some(known[process].clone());
                fixture.call(Operation::Read, 0, &[0]);
            }
            fixture.view = None;
            assert_eq!(fixture.level(), (250, 0), "{algorithm:?}, {order:?}");
        }
        assert_eq!(read_uses(&mut fixture).uses, known[4].uses, "{algorithm:?}");
    }
}

/// Returns the state with the times of use.
fn read_uses(fixture: &mut Fixture) -> View {
    fixture.wants_uses = true;
    let state = fixture.read_state();
    fixture.wants_uses = false;
    state
}

#[test]
fn restored_key_without_usage_leaves_nothing_that_stays() {
    for algorithm in ALL_ALGORITHMS {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 100, algorithm)]);
        fixture.reserve(1, 50);
        let known = read_uses(&mut fixture);
        flush(&mut fixture);
        fixture.now += 1_000 * S;
        fixture.view = Some(known);
        fixture.call(Operation::Read, 0, &[0]);
        let ttl: i64 = redis::cmd("PTTL").arg(b"{a}k").query(fixture.server.connection()).unwrap();
        assert_ne!(ttl, -1, "{algorithm:?}: the hash has no end");
    }
}
