use super::super::{InTime, ServerTime, Verdict};
use super::scene::{RESERVE, S, Scene, refused};
use crate::quota::{Algorithm, Dimension};

const HOUR: u64 = 3_600 * S;

#[test]
fn what_comes_more_than_a_second_late_is_not_done() {
    let mut scene = Scene::requests();
    scene.time = ServerTime { expected: scene.now - S - 1, jump: 0 };
    let answer = scene.ask(RESERVE, 1, &[10]);
    assert_eq!((answer.verdict, answer.time), (Verdict::Stale, scene.now));
    assert_eq!(scene.level(), (0, 0));
    scene.time.expected += 1;
    assert_eq!(scene.reserve(1, 10), Verdict::Done);
}

#[test]
fn a_clock_set_back_changes_no_wait() {
    for algorithm in ALGORITHMS {
        let mut scene = Scene::with(&[(Dimension::Requests, 100, algorithm)]);
        scene.reserve(1, 100);
        scene.now += S / 2;
        let before = scene.reserve(2, 1);
        assert!(matches!(before, Verdict::Refused { wait: InTime::In(_), .. }));
        scene.now -= HOUR;
        assert_eq!(scene.reserve(2, 1), back(before, algorithm), "{algorithm:?}");
    }
}

/// The clock had gone on for half a second since it was last written down.
fn back(before: Verdict, _: Algorithm) -> Verdict {
    match before {
        Verdict::Refused { part, rule, wait: InTime::In(wait) } => {
            Verdict::Refused { part, rule, wait: InTime::In(wait + S / 2) }
        }
        other => other,
    }
}

#[test]
fn readings_a_little_out_of_order_count_as_the_latest() {
    let mut scene = Scene::requests();
    scene.reserve(1, 100);
    scene.now -= S;
    let answer = scene.ask(RESERVE, 2, &[1]);
    assert_eq!((answer.verdict, answer.time), (refused(InTime::In(S)), scene.now + S));
}

#[test]
fn a_clock_set_forward_changes_no_wait_and_is_told_by_many() {
    for algorithm in ALGORITHMS {
        let mut scene = Scene::with(&[(Dimension::Requests, 100, algorithm)]);
        scene.reserve(1, 100);
        let before = scene.reserve(2, 1);
        scene.time = ServerTime { expected: scene.now, jump: 0 };
        scene.now += HOUR;
        assert_eq!(scene.reserve(2, 1), Verdict::Stale);
        scene.time = ServerTime { expected: scene.now, jump: HOUR };
        for _ in 0..3 {
            assert_eq!(scene.reserve(2, 1), before, "{algorithm:?}");
        }
        scene.now += 100 * S;
        assert_eq!(scene.reserve(2, 1), Verdict::Done);
    }
}

#[test]
fn a_clock_set_forward_prolongs_what_is_reserved() {
    let mut scene = Scene::tokens();
    scene.reserve(1, 60);
    scene.now += HOUR;
    scene.time = ServerTime { expected: scene.now, jump: HOUR };
    assert_eq!(scene.reserve(2, 1), Verdict::Done);
    assert_eq!(scene.level(), (0, 61));
    scene.now += 10 * S;
    assert_eq!(scene.level(), (61, 0));
}

/// A clock's windows go by the clock.
const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];
