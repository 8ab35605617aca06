use redis::Commands;

use super::super::text::{PIECES, TEXT};
use super::super::{Call, Id, InTime, Part, ServerTime, Verb, Verdict};
use super::scene::{S, Scene, refused};
use crate::quota::{Algorithm, Dimension};

#[test]
fn a_reservation_that_is_sent_again_is_granted_as_it_was() {
    let mut scene = Scene::tokens();
    assert_eq!(scene.reserve(1, 100), Verdict::Done);
    assert_eq!(scene.reserve(1, 100), Verdict::Done);
    assert_eq!(scene.level(), (0, 100));
}

#[test]
fn an_ending_that_is_sent_again_is_charged_once() {
    let mut scene = Scene::tokens();
    scene.reserve(1, 50);
    assert_eq!(scene.settle(1, 70), Verdict::Done);
    assert_eq!(scene.settle(1, 70), Verdict::Unknown);
    assert_eq!(scene.level(), (70, 0));
    assert_eq!(scene.release(2), Verdict::Unknown);
}

#[test]
fn a_charge_that_is_sent_again_is_taken_once() {
    let mut scene = Scene::tokens();
    assert_eq!(scene.ask(Verb::Charge, 1, &[150]).verdict, Verdict::Done);
    assert_eq!(scene.ask(Verb::Charge, 1, &[150]).verdict, Verdict::Done);
    assert_eq!(scene.ask(Verb::Charge, 2, &[1]).verdict, Verdict::Done);
    assert_eq!(scene.level(), (151, 0));
    assert_eq!(scene.reserve(3, 1), refused(InTime::In(52 * S)));
}

#[test]
fn a_late_copy_of_what_has_ended_is_refused_for_some_seconds() {
    let mut scene = Scene::tokens();
    for (id, ending) in [(1, Verb::Release { unsure: true }), (3, Verb::Settle { unsure: true })] {
        assert_eq!(scene.ask(ending, id, &[0]).verdict, Verdict::Unknown);
        assert_eq!(scene.reserve(id, 10), Verdict::Unknown);
        assert_eq!(scene.reserve(2, 10), Verdict::Done);
        assert_eq!(scene.release(2), Verdict::Done);
        assert_eq!(scene.level(), (0, 0));
        scene.now += 5 * S;
        assert_eq!(scene.reserve(id, 10), Verdict::Done);
        assert_eq!(scene.release(id), Verdict::Done);
    }
}

#[test]
fn what_is_reset_forgets_what_was_used_and_not_what_is_held() {
    let mut scene = Scene::tokens();
    scene.reserve(1, 10);
    scene.ask(Verb::Charge, 2, &[50]);
    assert_eq!(scene.level(), (50, 10));
    assert_eq!(scene.ask(Verb::Reset, 3, &[0]).verdict, Verdict::Done);
    assert_eq!(scene.level(), (0, 10));
    assert_eq!(scene.settle(1, 20), Verdict::Done);
    assert_eq!(scene.level(), (20, 0));
}

#[test]
fn several_keys_are_reserved_together_or_not_at_all() {
    let mut scene = Scene::tokens();
    scene.reserve(1, 50);
    let mut both = |id, amounts: [u64; 2]| {
        let part = |(name, amount): (&'static [u8], u64)| Part {
            name,
            rules: &scene.rules,
            amounts: [amount].as_slice().into(),
            lease: None,
            view: None,
        };
        let parts = [part((b"{a}j", amounts[0])), part((b"{a}k", amounts[1]))];
        let verb = Verb::Reserve { ttl: 10 * S, waits: false };
        let call = Call { verb, id: Id([id; 16]), time: ServerTime::default(), parts: &parts };
        scene.server.call(&call, scene.now)
    };
    let refusal = both(2, [10, 60]);
    let expected = Verdict::Refused { part: 1, rule: 0, wait: InTime::Unknown };
    assert_eq!(refusal.verdict, expected);
    assert_eq!(refusal.views[0].buckets[0], (0, 0));
    let granted = both(3, [10, 50]);
    assert_eq!(granted.verdict, Verdict::Done);
    assert_eq!((granted.views[0].buckets[0], granted.views[1].buckets[0]), ((0, 10), (0, 100)));
}

#[test]
fn a_look_and_a_refusal_on_a_key_that_isnt_there_leave_nothing() {
    let mut scene = Scene::tokens();
    assert_eq!(scene.look().born, 0);
    assert_eq!(scene.reserve(1, 101), refused(InTime::Never));
    assert!(!scene.server.connection().exists::<_, bool>("{a}k").unwrap());
}

#[test]
fn the_text_of_production_has_the_servers_clock_and_no_other() {
    let text = PIECES.concat();
    assert!(text.contains("redis.call('TIME')") && !text.contains("ARGV[3]"));
    let command = TEXT.by_hash().get_packed_command();
    assert!(String::from_utf8_lossy(&command).contains("EVALSHA"));
}

#[test]
fn the_servers_own_clock_counts_in_production() {
    let mut scene = Scene::requests();
    let parts = [Part {
        name: b"{a}p",
        rules: &scene.rules,
        amounts: [100].as_slice().into(),
        lease: None,
        view: None,
    }];
    let verb = Verb::Reserve { ttl: S, waits: false };
    let call = Call { verb, id: Id([1; 16]), time: ServerTime::default(), parts: &parts };
    let unknown = call.by_hash().query::<redis::Value>(scene.server.connection()).unwrap_err();
    assert_eq!(unknown.code(), Some("NOSCRIPT"));
    let value = call.by_text().query(scene.server.connection()).unwrap();
    let first = super::super::Answer::read(&call, &value).unwrap();
    let value = call.by_hash().query(scene.server.connection()).unwrap();
    let again = super::super::Answer::read(&call, &value).unwrap();
    assert_eq!((&first.verdict, &again.verdict), (&Verdict::Done, &Verdict::Done));
    assert!(again.time >= first.time && first.views[0].born == first.time);
}

#[test]
fn a_reset_that_is_sent_again_is_carried_out_once() {
    let mut scene = Scene::tokens();
    scene.ask(Verb::Charge, 1, &[50]);
    assert_eq!(scene.ask(Verb::Reset, 2, &[0]).verdict, Verdict::Done);
    scene.ask(Verb::Charge, 3, &[30]);
    assert_eq!(scene.ask(Verb::Reset, 2, &[0]).verdict, Verdict::Done);
    assert_eq!(scene.level(), (30, 0));
}

#[test]
fn a_key_is_reset_by_one_who_knows_no_rules_of_it() {
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::ClockWindow,
    ] {
        let mut scene = Scene::with(&[(Dimension::Requests, 100, algorithm)]);
        scene.reserve(1, 50);
        let rules = std::mem::take(&mut scene.rules);
        assert_eq!(scene.ask(Verb::Reset, 2, &[]).verdict, Verdict::Done);
        scene.rules = rules;
        assert_eq!(scene.level(), (0, 0), "{algorithm:?}");
        assert_eq!(scene.reserve(3, 100), Verdict::Done, "{algorithm:?}");
    }
}
