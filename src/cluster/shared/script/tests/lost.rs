use super::super::{InTime, Verb, Verdict, View};
use super::scene::{RESERVE, S, Scene, refused};
use crate::quota::{Algorithm, Dimension};

fn flush(scene: &mut Scene) {
    redis::cmd("FLUSHALL").exec(scene.server.connection()).unwrap();
}

fn without_figures(view: &View) -> View {
    View { buckets: [].as_slice().into(), ..view.clone() }
}

#[test]
fn a_server_that_came_back_empty_asks_what_was_known_and_counts_it() {
    for algorithm in ALGORITHMS {
        let mut scene = Scene::with(&[(Dimension::Tokens, 100, algorithm)]);
        scene.reserve(1, 50);
        scene.settle(1, 50);
        scene.reserve(2, 30);
        let known = scene.look();
        assert_eq!(known.buckets[0], (50, 30));
        flush(&mut scene);
        scene.now += 10 * S;
        scene.view = Some(without_figures(&known));
        assert_eq!(scene.reserve(3, 1), Verdict::Lost);
        scene.view = Some(known);
        assert_eq!(scene.reserve(3, 1), Verdict::Done);
        let refilled = if algorithm == Algorithm::TokenBucket { 10 } else { 0 };
        assert_eq!(scene.level(), (80 - refilled, 1), "{algorithm:?}");
    }
}

#[test]
fn what_two_knew_is_counted_once_and_the_more_of_it() {
    for algorithm in ALGORITHMS {
        let mut scene = Scene::with(&[(Dimension::Tokens, 100, algorithm)]);
        scene.reserve(1, 50);
        let first = scene.look();
        scene.reserve(2, 30);
        let second = scene.look();
        flush(&mut scene);
        scene.now += 1;
        for (id, known, used) in [(3, &first, 50), (4, &second, 80), (5, &second, 80)] {
            scene.view = Some(known.clone());
            assert_eq!(scene.reserve(id, 1), Verdict::Done);
            assert_eq!(scene.level(), (used, u64::from(id) - 2), "{algorithm:?}");
        }
    }
}

#[test]
fn a_key_that_expired_because_nothing_mattered_any_more_is_begun_anew() {
    let mut scene = Scene::requests();
    scene.reserve(1, 100);
    let known = scene.look();
    flush(&mut scene);
    scene.now += 100 * S;
    scene.view = Some(known);
    let answer = scene.ask(RESERVE, 2, &[100]);
    assert_eq!((answer.verdict, answer.views[0].born), (Verdict::Done, scene.now));
    assert_eq!(scene.reserve(3, 1), refused(InTime::In(S)));
}

#[test]
fn what_is_in_flight_when_the_state_is_lost_is_put_back_and_its_rest_stays_used() {
    for algorithm in ALGORITHMS {
        let mut scene = Scene::with(&[
            (Dimension::Concurrency, 2, Algorithm::SlidingWindow),
            (Dimension::Tokens, 100, algorithm),
        ]);
        let ask =
            |scene: &mut Scene, verb, id, amounts: &[u64]| scene.ask(verb, id, amounts).verdict;
        for (id, tokens) in [(1, 60), (2, 20)] {
            assert_eq!(ask(&mut scene, RESERVE, id, &[1, tokens]), Verdict::Done);
        }
        scene.view = Some(scene.look());
        flush(&mut scene);
        for (id, tokens) in [(1, 60), (2, 20)] {
            let renewed = ask(&mut scene, renew(false), id, &[1, tokens]);
            assert_eq!(renewed, Verdict::Unknown);
            for restores in [true, true, false] {
                let renewed = ask(&mut scene, renew(restores), id, &[1, tokens]);
                assert_eq!(renewed, Verdict::Done);
            }
        }
        assert_eq!(scene.look().buckets[..], [(0, 2), (80, 0)], "{algorithm:?}");
        assert_eq!(ask(&mut scene, RESERVE, 3, &[1, 1]), refused(InTime::Unknown));
        let settle = Verb::Settle { unsure: false };
        assert_eq!(ask(&mut scene, settle, 1, &[1, 5]), Verdict::Done);
        assert_eq!(scene.look().buckets[..], [(0, 1), (80, 0)], "{algorithm:?}");
        assert_eq!(ask(&mut scene, settle, 2, &[1, 30]), Verdict::Done);
        assert_eq!(scene.look().buckets[..], [(0, 0), (90, 0)], "{algorithm:?}");
    }
}

#[test]
fn what_is_put_back_is_let_go_when_nobody_renews_it_and_stays_out_once_it_has_ended() {
    let mut scene = Scene::with(&[(Dimension::Concurrency, 1, Algorithm::SlidingWindow)]);
    assert_eq!(scene.ask(renew(true), 1, &[1]).verdict, Verdict::Done);
    assert_eq!(scene.reserve(2, 1), refused(InTime::Unknown));
    scene.now += 10 * S;
    assert_eq!(scene.reserve(2, 1), Verdict::Done);
    scene.ask(Verb::Settle { unsure: true }, 2, &[1]);
    assert_eq!(scene.ask(renew(true), 2, &[1]).verdict, Verdict::Unknown);
    assert_eq!(scene.level(), (0, 0));
}

fn renew(restores: bool) -> Verb {
    Verb::Renew { ttl: 10 * S, restores }
}

const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::ClockWindow];
