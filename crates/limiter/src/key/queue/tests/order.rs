//! The order of waiters: gates, late arrivals, priorities and starved ones.

use super::*;

#[test]
fn request_with_old_number_entering_last_goes_first() {
    let mut queue = WaitQueue::default();
    for arrival in [5, 9, 2, 7] {
        queue.enter(Turn::request(arrival), Service::default(), None, &waker(), at(0));
    }
    for arrival in [2, 5, 7, 9] {
        assert!(queue.is_head(Turn::request(arrival)));
        drop(queue.remove(Turn::request(arrival), at(0)));
    }
}

#[test]
fn gate_goes_before_requests_that_arrived_later() {
    let mut queue = WaitQueue::default();
    let (gate, request) = (waker(), waker());
    queue.enter(Turn::gate(1), Service::default(), terms(Turn::gate(1)), &gate, at(0));
    queue.enter(Turn::request(9), Service::default(), None, &request, at(0));
    assert_eq!(ids(queue.next(at(0))), [id(&gate), id(&request)], "the gate may be forgotten");
    assert!(queue.is_behind(Turn::request(9), at(0)));
    assert!(queue.remove(Turn::gate(1), at(0)).unwrap().was_next);
    assert_eq!(ids(queue.next(at(0))), [id(&request)]);
}

#[test]
fn higher_priority_displaces_head_but_not_in_turn_of_starved() {
    let turn = |arrival, priority| Turn::request(arrival).within(priority, 0);
    let (low, high) = (turn(1, Priority::BATCH), turn(2, Priority::INTERACTIVE));
    let mut queue = WaitQueue::default();
    queue.enter(low, service(1, 1), None, &waker(), at(0));
    queue.enter(high, service(1, 1), None, &waker(), at(0));
    assert!(queue.is_head(high));
    queue.enter(turn(3, Priority::INTERACTIVE), service(1, 1), None, &waker(), at(0));
    drop(queue.grant(high, service(1, 1), at(10)));
    assert!(queue.is_head(low), "it has had no turn for 10 s");
    queue.enter(turn(4, Priority::new(100)), service(1, 1), None, &waker(), at(10));
    assert!(queue.is_head(low));
}

#[test]
fn starved_priority_with_two_flows_has_one_turn() {
    let turn = |arrival, priority, flow| Turn::request(arrival).within(priority, flow);
    let mut queue = WaitQueue::default();
    let turns = [
        turn(1, Priority::NORMAL, 0),
        turn(2, Priority::NORMAL, 0),
        turn(3, Priority::BATCH, 1),
        turn(4, Priority::BATCH, 2),
    ];
    for turn in turns {
        queue.enter(turn, service(1, 1), None, &waker(), at(0));
    }
    drop(queue.grant(turns[0], service(1, 1), at(10)));
    assert!(queue.is_head(turns[2]), "it has had no turn for 10 s");
    drop(queue.grant(turns[2], service(1, 1), at(11)));
    assert!(queue.is_head(turns[1]));
}

#[test]
fn starved_priority_chosen_by_an_arrival_is_to_be_woken() {
    let turn = |arrival, level| Turn::request(arrival).within(Priority::new(level), 0);
    let mut queue = WaitQueue::default();
    let mut enter = |turn, time| queue.enter(turn, service(1, 1), None, &waker(), at(time));
    assert!(!enter(turn(1, 1), 0));
    assert!(!enter(turn(2, 0), 0));
    assert!(!enter(turn(3, 1), 0));
    // The head's turn ends late, and another of its priority follows.
    drop(queue.grant(turn(1, 1), service(1, 1), at(9)));
    assert!(queue.is_head(turn(3, 1)));
    let arrival = turn(4, 2);
    assert!(queue.enter(arrival, service(1, 1), None, &waker(), at(12)));
    assert!(queue.is_head(turn(2, 0)), "it has had no turn for 10 s");
}

#[test]
fn head_older_than_max_starvation_is_not_displaced() {
    let turn = |arrival, priority| Turn::request(arrival).within(priority, 0);
    let low = turn(1, Priority::BATCH);
    let mut queue = WaitQueue::default();
    queue.enter(low, service(1, 1), None, &waker(), at(0));
    queue.enter(turn(2, Priority::NORMAL), service(1, 1), None, &waker(), at(10));
    assert!(queue.is_head(low));
}

#[test]
fn arrival_does_not_pass_a_starved_priority() {
    let turn = |arrival, priority| Turn::request(arrival).within(priority, 0);
    let mut queue = WaitQueue::default();
    queue.enter(turn(1, Priority::BATCH), service(1, 1), None, &waker(), at(0));
    queue.enter(turn(2, Priority::NORMAL), service(1, 1), None, &waker(), at(9));
    assert!(queue.is_head(turn(2, Priority::NORMAL)));
    let arrival = turn(u64::MAX, Priority::INTERACTIVE);
    assert!(!queue.is_behind(arrival, at(9)), "it takes the place of the head");
    assert!(queue.is_behind(arrival, at(10)), "the lowest has had no turn for 10 s");
    queue.enter(turn(3, Priority::INTERACTIVE), service(1, 1), None, &waker(), at(10));
    assert!(queue.is_head(turn(1, Priority::BATCH)));
}

#[test]
fn starved_priority_has_turn_although_its_requests_give_up() {
    let turn = |arrival, priority| Turn::request(arrival).within(priority, 0);
    let mut queue = WaitQueue::default();
    let high = |arrival| turn(arrival, Priority::INTERACTIVE);
    queue.enter(high(100), service(1, 1), None, &waker(), at(0));
    // A request of the lower priority waits for 4 s each, with a second between them.
    for second in 0..10 {
        let low = turn(second, Priority::BATCH);
        if second % 5 < 4 {
            queue.enter(low, service(1, 1), None, &waker(), at(second));
        }
        queue.enter(high(second + 101), service(1, 1), None, &waker(), at(second));
        drop(queue.grant(high(second + 100), service(1, 1), at(second)));
        assert!(queue.is_head(high(second + 101)), "{second}");
        drop(queue.remove(low, at(second)));
    }
    queue.enter(turn(10, Priority::BATCH), service(1, 1), None, &waker(), at(10));
    queue.enter(high(111), service(1, 1), None, &waker(), at(10));
    drop(queue.grant(high(110), service(1, 1), at(10)));
    assert!(queue.is_head(turn(10, Priority::BATCH)), "it has had no turn for 10 s");
    // It was served.
    drop(queue.grant(turn(10, Priority::BATCH), service(1, 1), at(10)));
    queue.enter(turn(11, Priority::BATCH), service(1, 1), None, &waker(), at(11));
    queue.enter(high(112), service(1, 1), None, &waker(), at(11));
    drop(queue.grant(high(111), service(1, 1), at(12)));
    assert!(queue.is_head(high(112)));
}

#[test]
fn starved_priority_has_turn_after_clock_was_set_back() {
    let turn = |arrival, priority| Turn::request(arrival).within(priority, 0);
    let (low, high) = (turn(1, Priority::BATCH), turn(2, Priority::INTERACTIVE));
    let mut queue = WaitQueue::default();
    queue.enter(low, service(1, 1), None, &waker(), at(3_600));
    queue.enter(high, service(1, 1), None, &waker(), at(3_600));
    queue.enter(turn(3, Priority::INTERACTIVE), service(1, 1), None, &waker(), at(3_600));
    queue.rebase(Duration::from_secs(3_600));
    queue.charge(high, service(1, 1), at(10));
    assert!(queue.is_head(low), "it has had no turn for 10 s");
}
