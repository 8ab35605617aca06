use redis::Commands;

use super::super::{InTime, Verb, Verdict};
use super::scene::{RESERVE, S, Scene, refused};
use crate::quota::{Algorithm, Dimension};

#[test]
fn what_nobody_renews_counts_as_used_from_its_expiry_on() {
    let mut scene = Scene::tokens();
    assert_eq!(scene.reserve(1, 60), Verdict::Done);
    assert_eq!(scene.level(), (0, 60));
    scene.now += 10 * S - 1;
    assert_eq!(scene.level(), (0, 60));
    scene.now += 1;
    assert_eq!(scene.level(), (60, 0));
    assert_eq!(scene.settle(1, 5), Verdict::Unknown);
    scene.now += S;
    assert_eq!(scene.level(), (59, 0));
}

#[test]
fn what_is_renewed_stays_held() {
    let mut scene = Scene::tokens();
    scene.reserve(1, 60);
    scene.now += 6 * S;
    assert_eq!(
        scene.ask(Verb::Renew { ttl: 10 * S, restores: false }, 1, &[0]).verdict,
        Verdict::Done
    );
    assert_eq!(
        scene.ask(Verb::Renew { ttl: 10 * S, restores: false }, 2, &[0]).verdict,
        Verdict::Unknown
    );
    scene.now += 10 * S - 1;
    assert_eq!(scene.level(), (0, 60));
    scene.now += 1;
    assert_eq!(scene.level(), (60, 0));
}

#[test]
fn who_settles_late_but_first_settles_what_it_took() {
    let mut scene = Scene::tokens();
    scene.reserve(1, 60);
    scene.now += 20 * S;
    assert_eq!(scene.settle(1, 5), Verdict::Done);
    assert_eq!(scene.level(), (5, 0));
}

#[test]
fn a_request_in_flight_is_let_go_at_its_expiry() {
    let mut scene = Scene::with(&[(Dimension::Concurrency, 1, Algorithm::SlidingWindow)]);
    assert_eq!(scene.reserve(1, 1), Verdict::Done);
    assert_eq!(scene.reserve(2, 1), refused(InTime::Unknown));
    scene.now += 10 * S;
    assert_eq!(scene.reserve(2, 1), Verdict::Done);
}

#[test]
fn every_algorithm_counts_what_expired() {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::ClockWindow] {
        let mut scene = Scene::with(&[(Dimension::Tokens, 100, algorithm)]);
        assert_eq!(scene.reserve(1, 60), Verdict::Done);
        assert_eq!(scene.reserve(2, 30), Verdict::Done);
        assert_eq!(scene.settle(2, 10), Verdict::Done);
        scene.now += 10 * S;
        assert_eq!(scene.level(), (70, 0), "{algorithm:?}");
        assert_eq!(scene.reserve(3, 31), refused(InTime::In(90 * S)), "{algorithm:?}");
    }
}

#[test]
fn a_key_is_kept_as_long_as_it_matters_and_no_longer() {
    let mut scene = Scene::requests();
    scene.ask(RESERVE, 1, &[100]);
    scene.ask(Verb::Settle { unsure: false }, 1, &[100]);
    let left: u64 = scene.server.connection().pttl("{a}k").unwrap();
    assert!((100_000..300_000).contains(&left), "{left}");
}

#[test]
fn a_key_outlives_what_anybody_has_seen_held_of_it() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::ClockWindow] {
        let mut scene = Scene::with(&[(Dimension::Tokens, 1_000, algorithm)]);
        scene.reserve(1, 1);
        scene.settle(1, 1);
        for id in 2..4 {
            scene.reserve(id, 450);
        }
        for id in 2..4 {
            scene.release(id);
        }
        let left: u64 = scene.server.connection().pttl("{a}k").unwrap();
        assert!(left >= 900_000, "{algorithm:?}: {left}");
    }
}
