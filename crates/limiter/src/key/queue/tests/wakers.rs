//! The wakers of waiters.

use super::*;

#[test]
fn waker_set_again_is_not_replaced() {
    let (mut queue, waker) = (WaitQueue::default(), waker());
    queue.enter(Turn::request(1), Service::default(), None, &waker, at(0));
    queue.listen(1, &waker);
    assert!(queue.set_waker(Turn::request(1), &waker).is_none());
    assert!(queue.set_listener_waker(1, &waker).is_none());
}

#[test]
fn wakers_called_wake_due_tasks_and_drop_replaced() {
    let ((due, first), (other, second), (replaced, third)) =
        (Counter::new(), Counter::new(), Counter::new());
    let mut wakers = Wakers::default();
    wakers.wake([first.clone(), first]);
    wakers.wake(Some(second));
    wakers.drop_later(Some(third));
    assert_eq!((due.calls(), other.calls(), Arc::strong_count(&replaced)), (0, 0, 2));
    wakers.call();
    assert_eq!((due.calls(), other.calls(), replaced.calls()), (2, 1, 0));
    assert_eq!([due, other, replaced].map(|counter| Arc::strong_count(&counter)), [1; 3]);
}
