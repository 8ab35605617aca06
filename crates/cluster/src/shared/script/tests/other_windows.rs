//! Limits of one dimension in different windows: changed by a process, or stated by two.

use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};

use super::super::{Operation, Outcome};
use super::fixture::{Fixture, RESERVE, S};

/// Returns a limit of 100 per this many seconds.
fn per(seconds: u64, algorithm: Algorithm, settle: SettleAt) -> Rule {
    let window = Window::new(Duration::from_secs(seconds)).unwrap();
    let limit = Limit::new(Dimension::Tokens, 100, window).unwrap();
    Rule::new(&limit, algorithm, Margin::NONE, settle)
}

const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];

#[test]
fn changed_window_counts_usage_of_the_old_one() {
    for algorithm in ALGORITHMS {
        for (old, new) in [(10, 20), (20, 10)] {
            let mut fixture = Fixture::tokens();
            fixture.rules = vec![per(old, algorithm, SettleAt::Send)];
            assert_eq!(fixture.reserve(1, 60), Outcome::Done);
            fixture.now += S;
            assert_eq!(fixture.reserve(2, 40), Outcome::Done);
            fixture.rules = vec![per(new, algorithm, SettleAt::Send)];
            let refused = fixture.reserve(3, 41);
            assert!(matches!(refused, Outcome::Refused { .. }), "{algorithm:?} {old}: {refused:?}");
            fixture.now += new * S;
            assert_eq!(fixture.reserve(4, 100), Outcome::Done, "{algorithm:?} {old}");
        }
    }
}

#[test]
fn changed_window_counts_amounts_in_flight() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        let mut fixture = Fixture::tokens();
        fixture.rules = vec![per(10, algorithm, SettleAt::End)];
        assert_eq!(fixture.reserve(1, 90), Outcome::Done);
        fixture.rules = vec![per(20, algorithm, SettleAt::End)];
        assert!(matches!(fixture.reserve(2, 11), Outcome::Refused { .. }), "{algorithm:?}");
        assert_eq!(fixture.reserve(3, 10), Outcome::Done);
        assert_eq!(fixture.settle(1, 30), Outcome::Done);
        assert_eq!(fixture.level(), (30, 10), "{algorithm:?}");
        assert_eq!(fixture.release(3), Outcome::Done);
        assert_eq!(fixture.level(), (30, 0), "{algorithm:?}");
    }
}

#[test]
fn request_sent_before_its_window_changed_counts_once() {
    let mut fixture = Fixture::tokens();
    let rules = [10, 20].map(|s| vec![per(s, Algorithm::SlidingWindow, SettleAt::Send)]);
    fixture.rules.clone_from(&rules[0]);
    assert_eq!(fixture.reserve(1, 30), Outcome::Done);
    fixture.rules.clone_from(&rules[1]);
    assert_eq!(fixture.reserve(2, 40), Outcome::Done);
    for rules in &rules {
        fixture.rules.clone_from(rules);
        assert_eq!(fixture.call(Operation::Read, 3, &[0]).outcome, Outcome::Done);
    }
    assert_eq!(fixture.settle(1, 30), Outcome::Done);
    assert_eq!(fixture.settle(2, 40), Outcome::Done);
    assert_eq!(fixture.level(), (70, 0));
}

#[test]
fn windows_of_two_processes_both_count() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        for settle in [SettleAt::Send, SettleAt::End] {
            let (mut fixture, mut granted) = (Fixture::tokens(), Vec::new());
            let rules = [10, 20].map(|seconds| vec![per(seconds, algorithm, settle)]);
            for id in 0..200 {
                fixture.rules.clone_from(&rules[usize::from(id % 2)]);
                let response = fixture.call(RESERVE, id, &[10]);
                assert_eq!(response.views[0].has_other_windows, id > 1, "{id}");
                if response.outcome == Outcome::Done {
                    granted.push(fixture.now);
                    assert_eq!(fixture.settle(id, 10), Outcome::Done);
                }
                fixture.now += S / 4;
            }
            let most = if algorithm == Algorithm::TokenBucket { 34 } else { 30 };
            assert_eq!(granted.len(), most, "{algorithm:?} {settle:?}: {granted:?}");
        }
    }
}

#[test]
fn window_that_no_process_states_any_more_is_dropped() {
    let mut fixture = Fixture::tokens();
    let rules =
        [10, 1_000].map(|seconds| vec![per(seconds, Algorithm::SlidingWindow, SettleAt::Send)]);
    for (id, rules) in (1..).zip([&rules[0], &rules[1], &rules[0]]) {
        fixture.rules.clone_from(rules);
        assert_eq!(fixture.reserve(id, 30), Outcome::Done);
    }
    assert!(matches!(fixture.reserve(4, 11), Outcome::Refused { .. }));
    fixture.now += 10 * S;
    assert_eq!(fixture.reserve(5, 100), Outcome::Done);
    // The other process comes back: what it knows of its window still counts.
    fixture.rules.clone_from(&rules[1]);
    assert!(matches!(fixture.reserve(6, 11), Outcome::Refused { .. }));
}

#[test]
fn limits_of_which_a_process_states_one_all_count() {
    let mut fixture = Fixture::tokens();
    let [minute, day] = [60, 86_400].map(|s| per(s, Algorithm::TokenBucket, SettleAt::Send));
    fixture.rules = vec![minute.clone(), day];
    assert_eq!(fixture.call(RESERVE, 1, &[50, 50]).outcome, Outcome::Done);
    let both = std::mem::replace(&mut fixture.rules, vec![minute]);
    assert_eq!(fixture.reserve(2, 1), Outcome::Done);
    fixture.rules.clone_from(&both);
    assert_eq!(fixture.call(Operation::Read, 3, &[0, 0]).views[0].buckets[1], (50, 0));
    fixture.rules.truncate(1);
    fixture.now += 5 * S;
    assert_eq!(fixture.reserve(4, 40), Outcome::Done);
    fixture.rules = both;
    assert_eq!(fixture.call(Operation::Read, 5, &[0, 0]).views[0].buckets[1], (90, 0));
}
