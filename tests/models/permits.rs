//! Ends of permits, against each other and against waiters that leave.

use shuttle::thread;
use tollgate::quota::{Dimension, Quota};

use super::{assert_nobody_there, block_on, check, level, limiter, poll_once, together, tokens};

#[test]
fn totals_are_exact_however_permits_end_and_waiters_leave() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100).rpm(100).concurrency(3));
        let [settled, dropped, released] = [(); 3].map(|()| limiter.try_acquire("k", &tokens(30)));
        let [settled, dropped, released] = [settled, dropped, released].map(Result::unwrap);
        // It fits when all three have ended, and not before.
        let wait = {
            let limiter = limiter.clone();
            move || block_on(limiter.acquire("k", &tokens(50))).unwrap().settle(&tokens(49))
        };
        let leave = {
            let limiter = limiter.clone();
            move || {
                let granted = poll_once(limiter.acquire("k", &tokens(50)));
                granted.into_iter().for_each(|permit| permit.unwrap().release());
            }
        };
        together([
            Box::new(wait),
            Box::new(leave),
            Box::new(move || settled.settle(&tokens(20))),
            Box::new(move || drop(dropped)),
            Box::new(move || released.release()),
        ]);
        let stats = limiter.stats("k");
        assert_eq!(level(&stats, &Dimension::Tokens), (20 + 30 + 49, 0));
        assert_eq!(level(&stats, &Dimension::Requests), (3, 0), "a released one never left");
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn what_does_not_fit_is_never_granted_however_many_ask_at_once() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100).concurrency(2));
        let ask = || {
            let limiter = limiter.clone();
            move || limiter.try_acquire("k", &tokens(40)).ok()
        };
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(ask())).collect();
        let granted = threads.into_iter().filter_map(|thread| thread.join().unwrap());
        let granted: Vec<_> = granted.collect();
        assert_eq!(granted.len(), 2);
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (0, 80));
        assert_eq!(level(&limiter.stats("k"), &Dimension::Concurrency).1, 2);
        drop(granted);
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (80, 0));
    });
}
