use super::super::{InTime, ServerTime, Verb, Verdict};
use super::scene::{S, Scene, refused};

const HOUR: u64 = 3_600 * S;
const WAITS: Verb = Verb::Reserve { ttl: 10 * S, waits: true };

fn wait(scene: &mut Scene, id: u8, amount: u64) -> Verdict {
    scene.ask(WAITS, id, &[amount]).verdict
}

/// Forty are free; the second wants eighty of them.
fn waited() -> Scene {
    let mut scene = Scene::requests();
    assert_eq!(scene.reserve(1, 60), Verdict::Done);
    assert_eq!(wait(&mut scene, 2, 80), refused(InTime::In(40 * S)));
    scene
}

#[test]
fn nobody_passes_who_came_earlier() {
    let mut scene = waited();
    assert_eq!(scene.reserve(3, 20), refused(InTime::In(S * 60)));
    assert_eq!(wait(&mut scene, 3, 21), refused(InTime::Unknown));
    scene.now += 20 * S;
    assert_eq!(wait(&mut scene, 2, 80), refused(InTime::In(20 * S)));
    scene.now += 20 * S;
    assert_eq!(scene.reserve(4, 1), refused(InTime::In(S)));
    assert_eq!(wait(&mut scene, 2, 80), Verdict::Done);
    assert_eq!(scene.reserve(4, 1), refused(InTime::In(S)));
}

#[test]
fn who_gives_up_lets_the_next_pass() {
    let mut scene = waited();
    assert_eq!(scene.release(2), Verdict::Unknown);
    assert_eq!(scene.reserve(3, 40), Verdict::Done);
}

#[test]
fn who_no_longer_asks_loses_its_place() {
    let mut scene = waited();
    // It is asked for half a minute at most, and a quarter of a second.
    scene.now += 30 * S + S / 4 - 1;
    assert!(matches!(scene.reserve(3, 40), Verdict::Refused { .. }));
    scene.now += 1;
    assert_eq!(scene.reserve(3, 40), Verdict::Done);
}

#[test]
fn who_asks_once_and_doesnt_wait_has_no_place() {
    let mut scene = Scene::requests();
    scene.reserve(1, 60);
    assert_eq!(scene.reserve(2, 80), refused(InTime::In(40 * S)));
    assert_eq!(scene.reserve(3, 40), Verdict::Done);
}

#[test]
fn a_place_lasts_as_long_though_the_clock_is_set() {
    for (back, on, by) in [(HOUR, 0, 0), (0, HOUR, HOUR)] {
        let mut scene = waited();
        scene.now = scene.now - back + on;
        scene.time = ServerTime { expected: scene.now, jump: by };
        assert!(matches!(scene.reserve(3, 40), Verdict::Refused { .. }));
        scene.time = ServerTime::default();
        scene.now += 30 * S + S / 4 - 1;
        assert!(matches!(scene.reserve(3, 40), Verdict::Refused { .. }));
        scene.now += 1;
        assert_eq!(scene.reserve(3, 40), Verdict::Done);
    }
}
