use super::super::{Amounts, Id, LeaseAnswer, LeaseRequest, Operation, Order, Outcome, RetryAfter};
use super::fixture::{Fixture, S, refused};

fn amounts(amount: u64) -> Amounts {
    [amount].as_slice().into()
}

fn lease(
    fixture: &mut Fixture,
    id: u8,
    call_number: u32,
    used: u64,
    [in_flight, least, wanted]: [u64; 3],
) -> LeaseAnswer {
    let wanted = LeaseRequest {
        id: Id([id; 16]),
        call_number,
        first_report: call_number,
        inflight: amounts(in_flight),
        least: amounts(least),
        wanted: amounts(wanted),
    };
    let response = fixture.call_with_lease(LEASE, id, &[used], Some(&wanted));
    let Outcome::Leases(mut answers) = response.outcome else { panic!("{:?}", response.outcome) };
    answers.remove(0)
}

fn granted(amount: u64) -> LeaseAnswer {
    LeaseAnswer::Granted(amounts(amount))
}

const LEASE: Operation = Operation::Lease { ttl: 10 * S };

#[test]
fn granted_lease_is_held() {
    for mut fixture in [Fixture::tokens(), Fixture::requests()] {
        assert_eq!(lease(&mut fixture, 1, 1, 0, [0, 1, 60]), granted(60));
        assert_eq!(lease(&mut fixture, 2, 1, 0, [0, 1, 60]), granted(40));
        assert_eq!(fixture.level(), (0, 100));
        assert_eq!(fixture.reserve(3, 1), refused(RetryAfter::Unknown));
    }
}

#[test]
fn renewal_settles_usage_and_keeps_amounts_in_flight() {
    let mut fixture = Fixture::tokens();
    lease(&mut fixture, 1, 1, 0, [0, 1, 60]);
    assert_eq!(lease(&mut fixture, 1, 2, 20, [15, 1, 30]), granted(30));
    assert_eq!(fixture.level(), (20, 45));
    assert_eq!(fixture.call(Operation::Return, 1, &[10]).outcome, Outcome::Done);
    assert_eq!(fixture.level(), (30, 0));
    assert_eq!(fixture.call(Operation::Return, 1, &[10]).outcome, Outcome::Unknown);
    assert_eq!(fixture.level(), (30, 0));
}

#[test]
fn lease_below_the_minimum_is_refused() {
    let mut fixture = Fixture::requests();
    fixture.reserve(1, 95);
    assert_eq!(
        lease(&mut fixture, 2, 1, 0, [0, 10, 50]),
        LeaseAnswer::Refused(RetryAfter::In(5 * S))
    );
    assert_eq!(fixture.level(), (95, 0));
    fixture.now += 5 * S;
    assert_eq!(lease(&mut fixture, 2, 2, 0, [0, 10, 50]), granted(10));
}

#[test]
fn refused_lease_keeps_amounts_in_flight() {
    let mut fixture = Fixture::requests();
    lease(&mut fixture, 1, 1, 0, [0, 1, 60]);
    fixture.now += 6 * S;
    assert_eq!(
        lease(&mut fixture, 1, 2, 0, [10, 91, 91]),
        LeaseAnswer::Refused(RetryAfter::Unknown)
    );
    fixture.now += 6 * S;
    assert_eq!(fixture.level(), (0, 10));
    fixture.now += 4 * S;
    assert_eq!(fixture.level(), (10, 0));
}

#[test]
fn repeated_lease_call_is_executed_once() {
    let mut fixture = Fixture::tokens();
    lease(&mut fixture, 1, 1, 0, [0, 1, 60]);
    for _ in 0..2 {
        assert_eq!(lease(&mut fixture, 1, 2, 20, [15, 1, 30]), granted(30));
        assert_eq!(fixture.level(), (20, 45));
    }
    assert_eq!(lease(&mut fixture, 1, 1, 0, [0, 1, 60]), LeaseAnswer::Unknown);
}

#[test]
fn expired_lease_counts_as_used_without_refund() {
    let mut fixture = Fixture::tokens();
    lease(&mut fixture, 1, 1, 0, [0, 1, 60]);
    fixture.now += 10 * S;
    assert_eq!(fixture.level(), (60, 0));
    assert_eq!(fixture.call(Operation::Return, 1, &[0]).outcome, Outcome::Unknown);
    assert_eq!(lease(&mut fixture, 1, 2, 5, [5, 1, 30]), LeaseAnswer::Unknown);
    assert_eq!(fixture.level(), (60, 0));
}

#[test]
fn request_that_gave_up_slows_no_leases() {
    let mut fixture = Fixture::requests();
    let waits = Operation::Reserve { ttl: 10 * S, waits: true, order: Order::ARRIVAL };
    assert_eq!(fixture.reserve(3, 20), Outcome::Done);
    assert_eq!(fixture.settle(3, 20), Outcome::Done);
    assert_eq!(lease(&mut fixture, 1, 1, 0, [0, 1, 60]), granted(60));
    assert_eq!(fixture.call(waits, 2, &[80]).outcome, refused(RetryAfter::Unknown));
    fixture.release(2);
    let executed = |fixture: &mut Fixture, command: &str| -> u32 {
        let connection = fixture.server.connection();
        let stats: String = redis::cmd("INFO").arg("commandstats").query(connection).unwrap();
        let prefix = format!("cmdstat_{command}:calls=");
        let calls = stats.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
        calls.map_or(0, |calls| calls.parse().unwrap())
    };
    let before = ["hmget", "hgetall"].map(|command| executed(&mut fixture, command));
    for call_number in 2..202 {
        fixture.now += S / 10;
        assert_eq!(lease(&mut fixture, 1, call_number, 0, [0, 1, 60]), granted(60));
    }
    let after = ["hmget", "hgetall"].map(|command| executed(&mut fixture, command));
    // The fast path reads the fields once; each second, what is remembered of the request is checked.
    assert!(after[0] - before[0] < 230, "{before:?}, {after:?}");
    assert_eq!(after[1], before[1]);
}
