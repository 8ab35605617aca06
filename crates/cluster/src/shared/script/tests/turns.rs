//! The order of waiting requests.

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt};
use paceline_limiter::seam::Precedence;

use super::super::{Operation, Order, Outcome};
use super::fixture::S;
use super::queue::{BATCH, INTERACTIVE, Queue, TICK, flow};

#[test]
fn higher_priority_goes_first() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH), (3, 5, BATCH), (4, 10, Order::ARRIVAL), (5, 10, INTERACTIVE)]);
    assert_eq!(queue.granted(4), [5, 4, 2, 3]);
}

#[test]
fn request_that_does_not_wait_passes_lower_priorities() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    let mut grants = |now: u64, order| {
        queue.fixture.now += now;
        assert!(!queue.ask((2, 50, BATCH)));
        let once = Operation::Reserve { ttl: 10 * S, waits: false, order };
        queue.fixture.call(once, 3, &[1]).outcome == Outcome::Done
    };
    assert_eq!([grants(TICK, BATCH), grants(0, INTERACTIVE)], [false, false]);
    assert_eq!([grants(TICK, BATCH), grants(0, INTERACTIVE)], [false, true]);
}

#[test]
fn flows_are_served_by_their_weights() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 2))]);
    let served = queue.flows_served(15);
    assert_eq!(served.iter().filter(|flow| **flow == 1).count(), 5, "{served:?}");
    // In proportion to the amounts, and not only in the end.
    for part in served.chunks(3) {
        assert_eq!(part.iter().filter(|flow| **flow == 1).count(), 1, "{served:?}");
    }
}

/// Checks that two flows get the same amount, of which the first has requests five times as large.
fn assert_same_amounts(mut queue: Queue) {
    queue.wait(&[(50, 10, flow(1, 1)), (100, 2, flow(2, 1))]);
    let served = queue.flows_served(24);
    assert_eq!(served.iter().filter(|flow| **flow == 1).count(), 4, "{served:?}");
}

#[test]
fn flow_of_large_requests_gets_the_same_amount_as_one_of_small_requests() {
    assert_same_amounts(Queue::new());
}

#[test]
fn total_has_no_rate_and_does_not_count_as_service() {
    let mut queue = Queue::new();
    let total = Limit::total(Dimension::Requests, 1_000_000).unwrap();
    let total = Rule::new(&total, Algorithm::FixedWindow, Margin::NONE, SettleAt::Send);
    queue.fixture.rules.push(total);
    queue.other_amounts.push(1);
    assert_same_amounts(queue);
}

#[test]
fn service_of_a_flow_is_remembered_while_nobody_waits() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 2))]);
    assert_eq!(queue.granted(2), [50, 100]);
    queue.wait(&[(150, 10, flow(3, 1)), (51, 10, flow(1, 1)), (101, 10, flow(2, 2))]);
    assert_eq!(queue.granted(3), [150, 101, 51]);
    queue.fixture.now += 2 * S;
    queue.wait(&[(151, 50, flow(3, 1)), (52, 10, flow(1, 1)), (102, 10, flow(2, 2))]);
    assert_eq!(queue.granted(3), [151, 52, 102], "processes that ask so late had nothing to send");
}

#[test]
fn flow_that_returns_gets_its_share() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 1))]);
    queue.flows_served(10);
    let (one, two) = (flow(1, 1), queue.waiting.iter().position(|request| request.0 >= 100));
    let (gone, ..) = queue.waiting.remove(two.unwrap());
    assert_eq!(queue.fixture.release(gone), Outcome::Unknown);
    // Flow 1 goes on for 10 s, and never has nothing to send.
    queue.wait(&[(60, 10, one)]);
    queue.granted(1);
    queue.wait(&[(80, 10, one), (120, 10, flow(2, 1))]);
    let served = queue.flows_served(8);
    assert_eq!(served.iter().filter(|flow| **flow == 1).count(), 4, "{served:?}");
}

#[test]
fn request_that_gives_up_is_not_charged() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 1))]);
    for id in 51..60 {
        queue.wait(&[(id, 10, flow(1, 1))]);
        assert_eq!(queue.fixture.release(id), Outcome::Unknown);
        queue.waiting.pop();
    }
    let served = queue.flows_served(8);
    assert_eq!(served, [1, 2, 1, 2, 1, 2, 1, 2]);
}

#[test]
fn raised_priority_moves_a_waiting_request() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 5, BATCH), (3, 5, Order::ARRIVAL), (4, 5, BATCH)]);
    assert!(!queue.ask((4, 5, INTERACTIVE)));
    queue.waiting[2].2 = INTERACTIVE;
    assert_eq!(queue.granted(3), [4, 3, 2]);
}

#[test]
fn request_whose_priority_is_raised_and_lowered_keeps_its_place() {
    const LAST: Order = Order { priority: -20, ..BATCH };
    let mut queue = Queue::new();
    for request in [(2, 5, BATCH), (3, 5, BATCH), (4, 5, INTERACTIVE), (5, 5, LAST)] {
        queue.wait(&[request]);
        queue.fixture.now += 1;
    }
    for order in [INTERACTIVE, BATCH] {
        assert!(!queue.ask((2, 5, order)));
    }
    assert_eq!(queue.granted(4), [4, 2, 3, 5]);
}

#[test]
fn tickets_of_another_form_are_ignored() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    let field: Vec<u8> =
        redis::cmd("HGET").arg("{a}k").arg("w").query(queue.fixture.server.connection()).unwrap();
    for command in [
        redis::cmd("HDEL").arg("{a}k").arg("w"),
        redis::cmd("HSET").arg("{a}k").arg("q").arg(&field[..48]),
    ] {
        command.query::<()>(queue.fixture.server.connection()).unwrap();
    }
    queue.fixture.now += 10 * S;
    assert_eq!(queue.fixture.reserve(3, 10), Outcome::Done);
    queue.waiting.clear();
    queue.wait(&[(4, 5, BATCH), (5, 5, INTERACTIVE)]);
    assert_eq!(queue.granted(2), [5, 4]);
}

#[test]
fn number_of_tickets_of_another_form_is_ignored() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    let connection = queue.fixture.server.connection();
    let mut state: Vec<u8> = redis::cmd("HGET").arg("{a}k").arg("s").query(connection).unwrap();
    assert_eq!(state[40..48], 0_f64.to_le_bytes(), "older versions see no tickets");
    state[40..48].copy_from_slice(&2_f64.to_le_bytes());
    redis::cmd("HSET").arg("{a}k").arg("s").arg(state).query::<()>(connection).unwrap();
    assert_eq!(queue.granted(1), [2]);
}

#[test]
fn flows_and_tickets_that_are_not_needed_are_removed() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 2))]);
    assert_eq!(queue.granted(2), [50, 100]);
    let connection = queue.fixture.server.connection();
    redis::cmd("HSET").arg("{a}k").arg("q").arg("old").query::<()>(connection).unwrap();
    let exists = |queue: &mut Queue, field: &str| -> bool {
        let connection = queue.fixture.server.connection();
        redis::cmd("HEXISTS").arg("{a}k").arg(field).query(connection).unwrap()
    };
    assert!(exists(&mut queue, "w"));
    // Reservations expire, for which the hash is searched.
    queue.fixture.now += 11 * S;
    assert_eq!(queue.fixture.reserve(3, 1), Outcome::Done);
    assert!(!exists(&mut queue, "w") && !exists(&mut queue, "q"));
}

#[test]
fn number_of_a_flow_depends_on_its_name_and_the_key_of_the_hash() {
    let order = |name: &str, key| {
        let flow = Some(name.into());
        Order::of(&Precedence { flow, weight: 3, ..Precedence::default() }, key)
    };
    assert_eq!(order("a", 1), order("a", 1));
    assert_ne!(order("a", 1).flow, order("b", 1).flow);
    assert_ne!(order("a", 1).flow, order("a", 2).flow);
    assert_eq!(order("a", 1).weight, 3);
}
