//! The turns of lower priorities.

use super::super::{Order, Outcome};
use super::fixture::S;
use super::queue::{BATCH, INTERACTIVE, Queue, TICK};

/// Returns a queue in which request 2 has been the first for 30 s, and an interactive one came then.
fn with_old_first_request() -> Queue {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    for _ in 0..60 {
        queue.fixture.now += TICK;
        assert!(!queue.ask((2, 50, BATCH)));
    }
    queue.wait(&[(3, 10, INTERACTIVE)]);
    queue
}

#[test]
fn first_request_keeps_its_turn_after_the_time_of_starvation() {
    let mut queue = with_old_first_request();
    assert_eq!(queue.granted(2), [2, 3]);
}

#[test]
fn first_request_keeps_its_turn_when_its_priority_is_raised() {
    let mut queue = with_old_first_request();
    assert!(!queue.ask((2, 50, INTERACTIVE)));
    queue.waiting[0].2 = INTERACTIVE;
    assert_eq!(queue.granted(2), [2, 3]);
}

#[test]
fn starved_request_keeps_its_turn_when_its_priority_is_raised() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 5, BATCH), (3, 10, INTERACTIVE), (4, 10, INTERACTIVE)]);
    for id in 5..8 {
        queue.wait(&[(id, 10, INTERACTIVE)]);
        assert_eq!(queue.next(), Some(id - 2));
    }
    assert!(!queue.ask((2, 5, INTERACTIVE)));
    queue.waiting[0].2 = INTERACTIVE;
    assert_eq!(queue.granted(2), [2, 6]);
}

#[test]
fn lower_priority_has_one_turn_after_the_time_of_starvation() {
    let mut queue = Queue::new();
    let interactive = |id| (id, 10, INTERACTIVE);
    queue.wait(&[interactive(3), (2, 5, BATCH), (4, 5, BATCH)]);
    let mut granted = Vec::new();
    for id in 5..12 {
        // The next one waits before the one before is granted.
        queue.wait(&[interactive(id)]);
        granted.push(queue.next().unwrap());
    }
    // After 10, 20, 30 and 35 s, and so on.
    assert_eq!(granted, [3, 5, 6, 2, 7, 8, 9]);
}

#[test]
fn lower_priority_has_a_turn_although_higher_ones_pause() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    let mut granted = Vec::new();
    for id in 3..8 {
        queue.wait(&[(id, 10, INTERACTIVE)]);
        granted.push(queue.next().unwrap());
        for _ in 0..4 {
            queue.fixture.now += TICK;
            let waiting = queue.waiting.clone();
            assert!(waiting.into_iter().all(|request| !queue.ask(request)));
        }
    }
    // The one at 32 s comes too late.
    assert_eq!(granted, [3, 4, 5, 2, 6]);
}

#[test]
fn lower_priority_has_a_turn_for_a_concurrency_slot() {
    let mut queue = Queue::for_a_place();
    queue.wait(&[(2, 1, BATCH)]);
    let mut granted = vec![1];
    for id in 3..40 {
        queue.wait(&[(id, 1, INTERACTIVE)]);
        queue.fixture.now += TICK;
        assert!(queue.waiting.clone().into_iter().all(|request| !queue.ask(request)));
        queue.fixture.now += TICK;
        queue.fixture.settle(*granted.last().unwrap(), 1);
        granted.push(queue.next().unwrap());
        if granted.ends_with(&[2]) {
            break;
        }
    }
    assert!(granted.ends_with(&[2]), "{granted:?}");
    assert!((30..33).contains(&granted.len()), "{granted:?}");
}

/// Returns after how many seconds a batch request is granted, while two interactive ones always wait, and each ends a
/// second after its grant. Every 5 s another request takes its place, after a gap of this many seconds.
fn turn_of_one_that_returns(mut queue: Queue, amount: u64, gap: u64) -> Option<u64> {
    let mut ids = 10_u8..;
    let (used, held) = queue.fixture.level();
    let (mut last, mut ends_at) = ((1, used + held), 0);
    queue.wait(&[(2, amount, INTERACTIVE), (3, amount, INTERACTIVE)]);
    for tick in 0..150 {
        if tick == ends_at {
            queue.fixture.settle(last.0, last.1);
        }
        if tick % 10 == 0 {
            queue.wait(&[(ids.next().unwrap(), amount, BATCH)]);
        }
        for (id, amount, order) in queue.waiting.clone() {
            if queue.ask((id, amount, order)) {
                if order == BATCH {
                    return Some(tick / 2);
                }
                (last, ends_at) = ((id, amount), tick + 2);
                queue.waiting.retain(|request| request.0 != id);
                queue.wait(&[(ids.next().unwrap(), amount, INTERACTIVE)]);
            }
        }
        if tick % 10 == 9 - 2 * gap {
            let at = queue.waiting.iter().position(|request| request.2 == BATCH).unwrap();
            let (id, ..) = queue.waiting.remove(at);
            assert_eq!(queue.fixture.release(id), Outcome::Unknown);
        }
        queue.fixture.now += TICK;
    }
    None
}

#[test]
fn lower_priority_has_its_turn_although_its_requests_give_up_and_return() {
    for gap in [0, 2] {
        let bucket = turn_of_one_that_returns(Queue::new(), 2, gap);
        let place = turn_of_one_that_returns(Queue::for_a_place(), 1, gap);
        for seconds in [bucket, place] {
            assert!(seconds.is_some_and(|at| (30..35).contains(&at)), "{seconds:?}, gap {gap} s");
        }
    }
}

#[test]
fn priority_is_forgotten_after_the_time_of_starvation() {
    // Without a limit, after a minute.
    for (max_starvation, remembered) in [(30 * S, 30), (1 << 53, 60)] {
        let mut queue = Queue::new();
        let [batch, interactive] =
            [BATCH, INTERACTIVE].map(|order| Order { max_starvation, ..order });
        queue.wait(&[(2, 5, batch), (3, 5, interactive)]);
        queue.fixture.now += TICK;
        for id in [2, 3] {
            assert_eq!(queue.fixture.release(id), Outcome::Unknown);
        }
        let mut is_remembered = |after: u64| {
            queue.fixture.now += after * S;
            assert!(matches!(queue.fixture.reserve(4, 90), Outcome::Refused { .. }));
            let connection = queue.fixture.server.connection();
            redis::cmd("HEXISTS").arg("{a}k").arg("w").query::<bool>(connection).unwrap()
        };
        assert_eq!([10, remembered - 11, 1].map(&mut is_remembered), [true, true, false]);
    }
}
