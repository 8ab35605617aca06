//! The queue's hand-over.

use std::sync::Arc;

use shuttle::sync::Mutex;
use tollgate::limiter::{Acquire, AcquireError, Limiter, ManualClock, Permit};
use tollgate::quota::{Algorithm, Cost, Quota};

use super::clock::JumpingClock;
use super::{assert_nobody_there, block_on, builder, check, limiter, poll_once, together};

/// Who waits, in order of arrival, as a bystander sees it. Numbers are written down in the moment
/// of arrival: whoever is in the book is in the queue, unless it is about to say otherwise.
#[derive(Debug, Clone, Default)]
struct Book(Arc<Mutex<Vec<usize>>>);

impl Book {
    fn arrive(&self, number: usize, acquire: &mut Acquire) -> Option<Permit> {
        let mut book = self.0.lock().unwrap();
        let Some(permit) = acquire.arrive() else {
            book.push(number);
            return None;
        };
        assert!(book.is_empty(), "a newcomer was let in past {book:?}");
        Some(permit.unwrap())
    }

    /// Where one at a time is let in, nobody else can be granted before this is written down.
    fn granted(&self, number: usize) {
        assert_eq!(self.0.lock().unwrap().remove(0), number, "granted out of turn");
    }

    fn leave(&self, number: usize) {
        self.0.lock().unwrap().retain(|&other| other != number);
    }

    fn try_acquire(&self, limiter: &Limiter) {
        let book = self.0.lock().unwrap();
        let granted = limiter.try_acquire("k", &Cost::new());
        assert!(granted.is_err() || book.is_empty(), "a newcomer was let in past {book:?}");
    }
}

fn stay(limiter: &Limiter, book: &Book, number: usize) {
    let mut acquire = limiter.acquire("k", &Cost::new());
    let _permit = book.arrive(number, &mut acquire).unwrap_or_else(|| {
        let permit = block_on(acquire).unwrap();
        book.granted(number);
        permit
    });
}

fn leave(limiter: &Limiter, book: &Book, number: usize) {
    let mut acquire = limiter.acquire("k", &Cost::new());
    if book.arrive(number, &mut acquire).is_some() {
        return;
    }
    match poll_once(&mut acquire) {
        Some(permit) => {
            let _permit = permit.unwrap();
            book.granted(number);
        }
        None => book.leave(number),
    }
}

#[test]
fn whoever_stays_is_granted_once_and_in_order_whoever_leaves() {
    check(|| {
        let (limiter, book) = (limiter(Quota::new().concurrency(1)), Book::default());
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let thread = |number: usize, act: fn(&Limiter, &Book, usize)| -> Box<dyn FnOnce() + Send> {
            let (limiter, book) = (limiter.clone(), book.clone());
            Box::new(move || act(&limiter, &book, number))
        };
        let newcomer = |limiter: &Limiter, book: &Book, _| book.try_acquire(limiter);
        together([
            thread(1, stay),
            thread(2, leave),
            thread(3, stay),
            thread(4, leave),
            thread(5, newcomer),
            Box::new(move || drop(held)),
        ]);
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn the_turn_of_one_who_leaves_goes_on_to_the_next_with_its_timer() {
    check(|| {
        let clock = JumpingClock::default();
        let quota = Quota::new().rpm(1).with_algorithm(Algorithm::TOKEN_BUCKET);
        let limiter = builder().quota("k", quota).clock(clock.clone()).build().unwrap();
        let (book, grants) = (Book::default(), Arc::new(Mutex::new(Vec::new())));
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        let stay = |number: usize| -> Box<dyn FnOnce() + Send> {
            let (limiter, book, grants) = (limiter.clone(), book.clone(), Arc::clone(&grants));
            Box::new(move || {
                let mut acquire = limiter.acquire("k", &Cost::new());
                // Nobody is written off: what is left are all arrivals so far.
                let mut arrived = book.0.lock().unwrap();
                let at_once = acquire.arrive();
                arrived.push(number);
                let rank = arrived.len();
                drop(arrived);
                let permit = at_once.unwrap_or_else(|| block_on(acquire)).unwrap();
                let granted_at = permit.granted_at();
                grants.lock().unwrap().push((granted_at, rank));
            })
        };
        let leave = {
            let limiter = limiter.clone();
            move || drop(poll_once(limiter.acquire("k", &Cost::new())))
        };
        clock.run(|| together([stay(1), Box::new(leave), stay(2)]));
        let mut grants = grants.lock().unwrap().clone();
        grants.sort_unstable();
        let ranks: Vec<_> = grants.iter().map(|&(_, rank)| rank).collect();
        assert_eq!(ranks, [1, 2], "in order of arrival");
        assert!(
            grants[0].0 >= ManualClock::START + MINUTE,
            "nobody before its time: {grants:?} {}",
            ManualClock::START
        );
        assert!(grants[1].0 >= grants[0].0 + MINUTE, "nobody twice, nobody before its time");
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn a_waiter_that_moves_to_another_task_is_woken_there() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let mut acquire = limiter.acquire("k", &Cost::new());
        assert!(acquire.arrive().is_none());
        let moved = move || drop(block_on(acquire).unwrap());
        together([Box::new(moved), Box::new(move || held.release())]);
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn a_full_queue_has_room_again_for_as_many_as_have_left() {
    check(|| {
        let quota = Quota::new().concurrency(1);
        let limiter = builder().quota("k", quota).max_waiting(1).build().unwrap();
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let wait = |limiter: Limiter| {
            move || match block_on(limiter.acquire("k", &Cost::new())) {
                Ok(permit) => drop(permit),
                Err(AcquireError::QueueFull { waiting, .. }) => assert_eq!(waiting, 1),
                Err(error) => panic!("{error}"),
            }
        };
        let leave = |limiter: Limiter| move || drop(poll_once(limiter.acquire("k", &Cost::new())));
        together([
            Box::new(wait(limiter.clone())),
            Box::new(wait(limiter.clone())),
            Box::new(leave(limiter.clone())),
            Box::new(move || drop(held)),
        ]);
        assert_nobody_there(&limiter, "k");
    });
}

const MINUTE: u64 = 60_000_000_000;
