use paceline_limiter::quota::Dimension;
use redis::Commands;

use super::super::text::{SOURCES, TEXT};
use super::super::{Call, Id, Operation, Order, Outcome, Part, RetryAfter, ServerTime};
use super::fixture::{ALL_ALGORITHMS, Fixture, S, refused};

#[test]
fn repeated_reserve_is_granted_once() {
    let mut fixture = Fixture::tokens();
    assert_eq!(fixture.reserve(1, 100), Outcome::Done);
    assert_eq!(fixture.reserve(1, 100), Outcome::Done);
    assert_eq!(fixture.level(), (0, 100));
}

#[test]
fn repeated_settle_is_charged_once() {
    let mut fixture = Fixture::tokens();
    fixture.reserve(1, 50);
    assert_eq!(fixture.settle(1, 70), Outcome::Done);
    assert_eq!(fixture.settle(1, 70), Outcome::Unknown);
    assert_eq!(fixture.level(), (70, 0));
    assert_eq!(fixture.release(2), Outcome::Unknown);
}

#[test]
fn repeated_charge_is_charged_once() {
    let mut fixture = Fixture::tokens();
    assert_eq!(fixture.call(Operation::Charge, 1, &[150]).outcome, Outcome::Done);
    assert_eq!(fixture.call(Operation::Charge, 1, &[150]).outcome, Outcome::Done);
    assert_eq!(fixture.call(Operation::Charge, 2, &[1]).outcome, Outcome::Done);
    assert_eq!(fixture.level(), (151, 0));
    assert_eq!(fixture.reserve(3, 1), refused(RetryAfter::In(52 * S)));
}

#[test]
fn late_copy_of_an_ended_reserve_is_refused() {
    let mut fixture = Fixture::tokens();
    for (id, ending) in
        [(1, Operation::Release { unsure: true }), (3, Operation::Settle { unsure: true })]
    {
        assert_eq!(fixture.call(ending, id, &[0]).outcome, Outcome::Unknown);
        assert_eq!(fixture.reserve(id, 10), Outcome::Unknown);
        assert_eq!(fixture.reserve(2, 10), Outcome::Done);
        assert_eq!(fixture.release(2), Outcome::Done);
        assert_eq!(fixture.level(), (0, 0));
        fixture.now += 5 * S;
        assert_eq!(fixture.reserve(id, 10), Outcome::Done);
        assert_eq!(fixture.release(id), Outcome::Done);
    }
}

#[test]
fn reset_clears_usage_and_keeps_holds() {
    let mut fixture = Fixture::tokens();
    fixture.reserve(1, 10);
    fixture.call(Operation::Charge, 2, &[50]);
    assert_eq!(fixture.level(), (50, 10));
    assert_eq!(fixture.call(Operation::Reset, 3, &[0]).outcome, Outcome::Done);
    assert_eq!(fixture.level(), (0, 10));
    assert_eq!(fixture.settle(1, 20), Outcome::Done);
    assert_eq!(fixture.level(), (20, 0));
}

#[test]
fn several_keys_are_reserved_atomically() {
    let mut fixture = Fixture::tokens();
    fixture.reserve(1, 50);
    let mut reserve_both = |id, amounts: [u64; 2]| {
        let part = |(name, amount): (&'static [u8], u64)| Part {
            name,
            rules: &fixture.rules,
            amounts: [amount].as_slice().into(),
            lease: None,
            view: None,
            wants_uses: false,
        };
        let parts = [part((b"{a}j", amounts[0])), part((b"{a}k", amounts[1]))];
        let operation = Operation::Reserve { ttl: 10 * S, waits: false, order: Order::ARRIVAL };
        let call = Call {
            operation,
            id: Id([id; 16]),
            time: ServerTime::default(),
            generation: 0,
            parts: &parts,
        };
        fixture.server.call(&call, fixture.now)
    };
    let refusal = reserve_both(2, [10, 60]);
    let expected = Outcome::Refused { part: 1, rule: 0, wait: RetryAfter::Unknown };
    assert_eq!(refusal.outcome, expected);
    assert_eq!(refusal.views[0].buckets[0], (0, 0));
    let granted = reserve_both(3, [10, 50]);
    assert_eq!(granted.outcome, Outcome::Done);
    assert_eq!((granted.views[0].buckets[0], granted.views[1].buckets[0]), ((0, 10), (0, 100)));
}

#[test]
fn read_and_refusal_create_no_key() {
    let mut fixture = Fixture::tokens();
    assert_eq!(fixture.read_state().created_at, 0);
    assert_eq!(fixture.reserve(1, 101), refused(RetryAfter::Never));
    assert!(!fixture.server.connection().exists::<_, bool>("{a}k").unwrap());
}

#[test]
fn production_script_uses_only_the_server_clock() {
    let text = SOURCES.concat();
    assert!(text.contains("redis.call('TIME')") && !text.contains("ARGV[3]"));
    let command = TEXT.by_hash().get_packed_command();
    assert!(String::from_utf8_lossy(&command).contains("EVALSHA"));
}

#[test]
fn production_script_runs_by_hash_with_the_server_clock() {
    let mut fixture = Fixture::requests();
    let parts = [Part {
        name: b"{a}p",
        rules: &fixture.rules,
        amounts: [100].as_slice().into(),
        lease: None,
        view: None,
        wants_uses: false,
    }];
    let operation = Operation::Reserve { ttl: S, waits: false, order: Order::ARRIVAL };
    let call = Call {
        operation,
        id: Id([1; 16]),
        time: ServerTime::default(),
        generation: 0,
        parts: &parts,
    };
    let unknown = call.by_hash().query::<redis::Value>(fixture.server.connection()).unwrap_err();
    assert_eq!(unknown.code(), Some("NOSCRIPT"));
    let value = call.by_text().query(fixture.server.connection()).unwrap();
    let first = super::super::Response::read(&call, &value).unwrap();
    let value = call.by_hash().query(fixture.server.connection()).unwrap();
    let again = super::super::Response::read(&call, &value).unwrap();
    assert_eq!((&first.outcome, &again.outcome), (&Outcome::Done, &Outcome::Done));
    assert!(again.time >= first.time && first.views[0].created_at == first.time);
}

#[test]
fn repeated_reset_is_executed_once() {
    let mut fixture = Fixture::tokens();
    fixture.call(Operation::Charge, 1, &[50]);
    assert_eq!(fixture.call(Operation::Reset, 2, &[0]).outcome, Outcome::Done);
    fixture.call(Operation::Charge, 3, &[30]);
    assert_eq!(fixture.call(Operation::Reset, 2, &[0]).outcome, Outcome::Done);
    assert_eq!(fixture.level(), (30, 0));
}

#[test]
fn reset_without_rules_clears_the_key() {
    for algorithm in ALL_ALGORITHMS {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 100, algorithm)]);
        fixture.reserve(1, 50);
        let rules = std::mem::take(&mut fixture.rules);
        assert_eq!(fixture.call(Operation::Reset, 2, &[]).outcome, Outcome::Done);
        fixture.rules = rules;
        assert_eq!(fixture.level(), (0, 0), "{algorithm:?}");
        assert_eq!(fixture.reserve(3, 100), Outcome::Done, "{algorithm:?}");
    }
}
