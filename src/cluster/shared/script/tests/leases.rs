use super::super::{Amounts, InTime, Verb, Verdict, Wanted};
use super::scene::{S, Scene, refused};

fn amounts(amount: u64) -> Amounts {
    [amount].as_slice().into()
}

fn lease(
    scene: &mut Scene,
    (id, turn): (u8, u32),
    used: u64,
    [flying, least, wanted]: [u64; 3],
) -> Verdict {
    let wanted = Wanted {
        turn,
        told: turn,
        inflight: amounts(flying),
        least: amounts(least),
        wanted: amounts(wanted),
    };
    scene.ask_for(Verb::Lease { ttl: 10 * S }, id, &[used], Some(&wanted)).verdict
}

fn granted(amount: u64) -> Verdict {
    Verdict::Leased(vec![amounts(amount)])
}

#[test]
fn a_lease_is_debited_when_it_is_granted() {
    for mut scene in [Scene::tokens(), Scene::requests()] {
        assert_eq!(lease(&mut scene, (1, 1), 0, [0, 1, 60]), granted(60));
        assert_eq!(lease(&mut scene, (2, 1), 0, [0, 1, 60]), granted(40));
        assert_eq!(scene.level(), (0, 100));
        assert_eq!(scene.reserve(3, 1), refused(InTime::Unknown));
    }
}

#[test]
fn what_was_used_is_settled_and_what_is_in_flight_stays_held() {
    let mut scene = Scene::tokens();
    lease(&mut scene, (1, 1), 0, [0, 1, 60]);
    assert_eq!(lease(&mut scene, (1, 2), 20, [15, 1, 30]), granted(30));
    assert_eq!(scene.level(), (20, 45));
    assert_eq!(scene.ask(Verb::Return, 1, &[10]).verdict, Verdict::Done);
    assert_eq!(scene.level(), (30, 0));
    assert_eq!(scene.ask(Verb::Return, 1, &[10]).verdict, Verdict::Unknown);
    assert_eq!(scene.level(), (30, 0));
}

#[test]
fn less_than_the_least_is_nothing() {
    let mut scene = Scene::requests();
    scene.reserve(1, 95);
    assert_eq!(lease(&mut scene, (2, 1), 0, [0, 10, 50]), refused(InTime::In(5 * S)));
    assert_eq!(scene.level(), (95, 0));
    scene.now += 5 * S;
    assert_eq!(lease(&mut scene, (2, 2), 0, [0, 10, 50]), granted(10));
}

#[test]
fn a_refusal_holds_what_is_in_flight_for_another_lease_time() {
    let mut scene = Scene::requests();
    lease(&mut scene, (1, 1), 0, [0, 1, 60]);
    scene.now += 6 * S;
    assert_eq!(lease(&mut scene, (1, 2), 0, [10, 91, 91]), refused(InTime::Unknown));
    scene.now += 6 * S;
    assert_eq!(scene.level(), (0, 10));
    scene.now += 4 * S;
    assert_eq!(scene.level(), (10, 0));
}

#[test]
fn a_call_for_a_lease_that_is_sent_again_is_carried_out_once() {
    let mut scene = Scene::tokens();
    lease(&mut scene, (1, 1), 0, [0, 1, 60]);
    for _ in 0..2 {
        assert_eq!(lease(&mut scene, (1, 2), 20, [15, 1, 30]), granted(30));
        assert_eq!(scene.level(), (20, 45));
    }
    assert_eq!(lease(&mut scene, (1, 1), 0, [0, 1, 60]), Verdict::Unknown);
}

#[test]
fn a_lease_whose_holder_is_gone_counts_as_used_and_is_never_refunded() {
    let mut scene = Scene::tokens();
    lease(&mut scene, (1, 1), 0, [0, 1, 60]);
    scene.now += 10 * S;
    assert_eq!(scene.level(), (60, 0));
    assert_eq!(scene.ask(Verb::Return, 1, &[0]).verdict, Verdict::Unknown);
    assert_eq!(lease(&mut scene, (1, 2), 5, [5, 1, 30]), Verdict::Unknown);
    assert_eq!(scene.level(), (60, 0));
}
