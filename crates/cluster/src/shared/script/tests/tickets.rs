use paceline_limiter::quota::{Algorithm, Dimension};
use smallvec::smallvec;

use super::super::{Operation, Order, Outcome, RetryAfter, ServerTime};
use super::fixture::{Fixture, S, refused};
use super::server::Server;
use crate::shared::server_clock::Jump;

const HOUR: u64 = 3_600 * S;
/// The time after which a ticket expires without renewal.
const TICKET: u64 = S * 9 / 10;
const WAITS: Operation = Operation::Reserve { ttl: 10 * S, waits: true, order: Order::ARRIVAL };

fn wait(fixture: &mut Fixture, id: u8, amount: u64) -> Outcome {
    fixture.call(WAITS, id, &[amount]).outcome
}

/// Asks again for a request that still doesn't fit, which renews its ticket.
fn keep_waiting(fixture: &mut Fixture, id: u8, amount: u64) {
    assert!(matches!(wait(fixture, id, amount), Outcome::Refused { .. }));
}

/// Returns a key with 40 free requests, and a waiter for 80.
fn key_with_waiter() -> Fixture {
    let mut fixture = Fixture::requests();
    assert_eq!(fixture.reserve(1, 60), Outcome::Done);
    assert_eq!(wait(&mut fixture, 2, 80), refused(RetryAfter::In(40 * S)));
    fixture
}

#[test]
fn later_request_never_overtakes_an_earlier_waiter() {
    let mut fixture = key_with_waiter();
    assert_eq!(fixture.reserve(3, 20), refused(RetryAfter::In(S * 60)));
    assert_eq!(wait(&mut fixture, 3, 21), refused(RetryAfter::Unknown));
    for _ in 0..22 {
        fixture.now += TICKET - 1;
        keep_waiting(&mut fixture, 2, 80);
    }
    fixture.now += 200_022;
    assert_eq!(wait(&mut fixture, 2, 80), refused(RetryAfter::In(20 * S)));
    for _ in 0..22 {
        fixture.now += TICKET - 1;
        keep_waiting(&mut fixture, 2, 80);
    }
    fixture.now += 200_022;
    assert_eq!(fixture.reserve(4, 1), refused(RetryAfter::In(S)));
    assert_eq!(wait(&mut fixture, 2, 80), Outcome::Done);
    assert_eq!(fixture.reserve(4, 1), refused(RetryAfter::In(S)));
}

#[test]
fn released_waiter_frees_the_amount_for_the_next() {
    let mut fixture = key_with_waiter();
    assert_eq!(fixture.release(2), Outcome::Unknown);
    assert_eq!(fixture.reserve(3, 40), Outcome::Done);
}

#[test]
fn ticket_without_renewal_expires_within_a_second() {
    let mut fixture = key_with_waiter();
    fixture.now += TICKET - 1;
    assert!(matches!(fixture.reserve(3, 40), Outcome::Refused { .. }));
    keep_waiting(&mut fixture, 2, 80);
    fixture.now += TICKET - 1;
    assert!(matches!(fixture.reserve(3, 40), Outcome::Refused { .. }));
    // Tickets are checked at most every 100 ms.
    fixture.now += S - TICKET;
    assert_eq!(fixture.reserve(3, 40), Outcome::Done);
}

#[test]
fn expired_ticket_frees_the_amount_behind_other_tickets() {
    let mut fixture = key_with_waiter();
    assert_eq!(wait(&mut fixture, 3, 30), refused(RetryAfter::Unknown));
    fixture.now += S / 2;
    assert_eq!(wait(&mut fixture, 3, 30), refused(RetryAfter::Unknown));
    fixture.now += S / 2;
    assert_eq!(wait(&mut fixture, 3, 30), Outcome::Done);
}

#[test]
fn request_for_most_of_the_limit_is_granted_after_its_refill() {
    let mut fixture = Fixture::requests();
    assert_eq!(fixture.reserve(1, 100), Outcome::Done);
    let granted = (0..2_000_u32).find(|tick| {
        fixture.now += S / 20;
        // An endless stream of small requests takes all that the ticket leaves.
        while fixture.reserve(u8::try_from(3 + tick % 200).unwrap(), 1) == Outcome::Done {}
        tick % 5 == 0 && wait(&mut fixture, 2, 95) == Outcome::Done
    });
    // 95 of 100 a minute and 40 s refill in 95 s; what came before its first call was taken.
    assert_eq!(granted, Some(95 * 20), "{:?}", fixture.level());
}

#[test]
fn request_without_wait_gets_no_ticket() {
    let mut fixture = Fixture::requests();
    fixture.reserve(1, 60);
    assert_eq!(fixture.reserve(2, 80), refused(RetryAfter::In(40 * S)));
    assert_eq!(fixture.reserve(3, 40), Outcome::Done);
}

#[test]
fn ticket_lifetime_survives_a_clock_change() {
    for (back, forward) in [(HOUR, 0), (0, HOUR)] {
        let mut fixture = key_with_waiter();
        fixture.now = fixture.now - back + forward;
        fixture.time = ServerTime {
            expected: fixture.now,
            jumps: smallvec![Jump { at: fixture.now, by: forward }],
        };
        assert!(matches!(fixture.reserve(3, 40), Outcome::Refused { .. }));
        fixture.time = ServerTime::default();
        fixture.now += TICKET - 1;
        assert!(matches!(fixture.reserve(3, 40), Outcome::Refused { .. }));
        fixture.now += S - TICKET;
        assert_eq!(fixture.reserve(3, 40), Outcome::Done);
    }
}

/// The server's clock is set back, which a process of an older version notices first: it moves no tickets.
#[expect(clippy::cast_precision_loss, reason = "the time is below 2^53")]
fn set_back_without_tickets(fixture: &mut Fixture) {
    fixture.now -= HOUR;
    let connection = fixture.server.connection();
    let mut state: Vec<u8> = redis::cmd("HGET").arg("{a}k").arg("s").query(connection).unwrap();
    state[16..24].copy_from_slice(&(fixture.now as f64).to_le_bytes());
    redis::cmd("HSET").arg("{a}k").arg("s").arg(state).query::<()>(connection).unwrap();
}

#[test]
fn tickets_that_an_older_process_has_not_moved_expire_and_keep_their_order() {
    for start in [Server::start, Server::without_fast_path] {
        let mut fixture = Fixture::with(&[(Dimension::Concurrency, 1, Algorithm::TokenBucket)]);
        fixture.server = start();
        assert_eq!(fixture.reserve(1, 1), Outcome::Done);
        for id in [2, 3, 4] {
            keep_waiting(&mut fixture, id, 1);
        }
        fixture.settle(1, 1);
        set_back_without_tickets(&mut fixture);
        // The process of request 2 has died.
        for _ in 0..2 {
            keep_waiting(&mut fixture, 4, 1);
            keep_waiting(&mut fixture, 3, 1);
            fixture.now += S / 2;
        }
        keep_waiting(&mut fixture, 4, 1);
        assert_eq!(wait(&mut fixture, 3, 1), Outcome::Done);
    }
}

#[test]
fn renewed_ticket_is_written_only_if_it_has_changed() {
    let mut fixture = Fixture::with(&[(Dimension::Requests, 100, Algorithm::FixedWindow)]);
    assert_eq!(fixture.reserve(1, 60), Outcome::Done);
    let mut tickets_after = |amount: u64| -> Vec<u8> {
        keep_waiting(&mut fixture, 2, amount);
        fixture.now += TICKET - S / 20;
        let connection = fixture.server.connection();
        redis::cmd("HGET").arg("{a}k").arg("w").query(connection).unwrap()
    };
    let [first, second, third] = [80, 80, 70].map(&mut tickets_after);
    assert_eq!(first, second);
    assert_ne!(second, third);
    assert_eq!(fixture.reserve(3, 30), refused(RetryAfter::In(100 * S - 3 * (TICKET - S / 20))));
}

#[test]
fn fields_of_tickets_that_expired_are_removed() {
    let mut fixture = Fixture::requests();
    assert_eq!(fixture.reserve(1, 60), Outcome::Done);
    fixture.now += 11 * S;
    let field = |id: u8| [b"t", &[id; 16][..]].concat();
    #[expect(clippy::cast_precision_loss, reason = "the time is below 2^53")]
    for (id, due) in [(8, fixture.now), (9, fixture.now + 1)] {
        let due = (due as f64).to_le_bytes();
        let mut set = redis::cmd("HSET");
        set.arg("{a}k").arg(field(id)).arg(&due);
        set.query::<()>(fixture.server.connection()).unwrap();
    }
    // The reservation has expired, for which the hash is searched.
    assert_eq!(fixture.reserve(2, 1), Outcome::Done);
    let exists = [8, 9].map(|id| {
        let connection = fixture.server.connection();
        redis::cmd("HEXISTS").arg("{a}k").arg(field(id)).query::<bool>(connection).unwrap()
    });
    assert_eq!(exists, [false, true]);
}
