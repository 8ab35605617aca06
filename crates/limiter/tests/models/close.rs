//! Closing a limiter: no request is admitted once `close` has returned.

use std::sync::Arc;

use paceline_limiter::limiter::{AcquireError, Code, Limiter};
use paceline_limiter::quota::{Cost, Dimension, Quota};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{
    Thread, assert_unused, block_on, builder, check, level, limiter, requests, run_threads,
    thread_of, tokens, wait_open,
};

/// Records that the limiter is closed, and the requests that its keys had used at that time.
#[derive(Debug, Clone, Default)]
struct Closed(Arc<(AtomicBool, AtomicU64)>);

impl Closed {
    /// Returns a thread that closes the limiter.
    fn close(&self, limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
        let closed = self.clone();
        thread_of(limiter, move |limiter| {
            block_on(limiter.close());
            closed.0.0.store(true, Ordering::SeqCst);
            closed.0.1.store(used(limiter, keys), Ordering::SeqCst);
            let refused = limiter.try_acquire(keys[0], &Cost::new()).unwrap_err();
            assert_eq!(refused.code, Code::Closed);
        })
    }

    /// Returns a thread that makes a request. `request` returns whether it was admitted.
    fn request(
        &self,
        limiter: &Limiter,
        request: impl FnOnce(&Limiter) -> bool + Send + 'static,
    ) -> Thread {
        let closed = self.clone();
        thread_of(limiter, move |limiter| {
            let was_closed = closed.0.0.load(Ordering::SeqCst);
            assert!(!request(limiter) || !was_closed, "admitted after the close");
        })
    }

    fn assert_unchanged(&self, limiter: &Limiter, keys: &[&str]) {
        assert_eq!(
            used(limiter, keys),
            self.0.1.load(Ordering::SeqCst),
            "admitted after the close"
        );
    }
}

fn used(limiter: &Limiter, keys: &[&str]) -> u64 {
    keys.iter().map(|key| requests(limiter, key)).sum()
}

#[test]
fn waiters_of_closed_limiter_are_rejected_and_permits_end() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        let held = limiter.try_acquire("k", &tokens(90)).unwrap();
        let ending = limiter.try_acquire("k", &tokens(10)).unwrap();
        // This request does not fit before the permits end.
        let wait = |limiter: &Limiter| {
            let rejected = block_on(limiter.acquire("k", &tokens(10))).unwrap_err();
            assert_eq!(rejected, AcquireError::Closed);
        };
        let close = |limiter: &Limiter| {
            block_on(limiter.close());
            let refused = limiter.try_acquire("k", &tokens(1)).unwrap_err();
            assert_eq!(refused.code, Code::Closed);
        };
        run_threads([
            thread_of(&limiter, wait),
            thread_of(&limiter, wait),
            thread_of(&limiter, close),
            Box::new(move || ending.settle(&tokens(7))),
        ]);
        held.release();
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (7, 0));
        assert_unused(&limiter, "k");
    });
}

#[test]
fn requests_of_closed_limiter_are_refused() {
    check(|| {
        let limiter = builder().quota("*", Quota::new().rpm(9)).build().unwrap();
        let (closed, handle) = (Closed::default(), limiter.key("a").unwrap());
        let by_name = |limiter: &Limiter| limiter.try_acquire("a", &Cost::new()).is_ok();
        let of_new_key = |limiter: &Limiter| block_on(limiter.acquire("b", &Cost::new())).is_ok();
        let of_several =
            |limiter: &Limiter| block_on(limiter.acquire_all(&["c", "a"], &Cost::new())).is_ok();
        run_threads([
            closed.request(&limiter, by_name),
            closed.request(&limiter, of_new_key),
            closed.request(&limiter, of_several),
            closed.request(&limiter, move |_| handle.try_acquire(&Cost::new()).is_ok()),
            closed.close(&limiter, KEYS),
        ]);
        closed.assert_unchanged(&limiter, KEYS);
    });
}

#[test]
fn waiters_of_limiter_closed_while_permits_end_are_rejected() {
    check(|| {
        let quota = Quota::new().concurrency(1).rpm(9);
        let limiter = builder().quota("*", quota).build().unwrap();
        let (closed, gate) = (Closed::default(), limiter.gate(&["a"]).unwrap());
        let held = limiter.try_acquire("a", &Cost::new()).unwrap();
        let wait = |limiter: &Limiter| block_on(limiter.acquire("a", &Cost::new())).is_ok();
        let of_several =
            |limiter: &Limiter| block_on(limiter.acquire_all(&["b", "a"], &Cost::new())).is_ok();
        run_threads([
            closed.request(&limiter, wait),
            closed.request(&limiter, of_several),
            Box::new(move || wait_open(gate)),
            Box::new(move || drop(held)),
            closed.close(&limiter, KEYS),
        ]);
        closed.assert_unchanged(&limiter, KEYS);
        KEYS.iter().for_each(|key| assert_unused(&limiter, key));
    });
}

#[test]
fn waiters_of_key_retired_while_limiter_closes_end() {
    check(|| {
        let one = Quota::new().concurrency(1);
        let limiter = builder().quota("m-*", one.clone()).build().unwrap();
        let (closed, gate) = (Closed::default(), limiter.gate(&["m-1"]).unwrap());
        let held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        let wait = |limiter: &Limiter| match block_on(limiter.acquire("m-1", &Cost::new())) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error, AcquireError::Closed);
                false
            }
        };
        run_threads([
            closed.request(&limiter, wait),
            closed.request(&limiter, wait),
            Box::new(move || wait_open(gate)),
            thread_of(&limiter, move |limiter| limiter.quotas().set("m-*", &one.shared()).unwrap()),
            thread_of(&limiter, |limiter| {
                block_on(limiter.close());
                assert!(limiter.try_acquire("m-2", &Cost::new()).is_err());
            }),
        ]);
        drop(held);
        assert_unused(&limiter, "m-1");
    });
}

const KEYS: &[&str] = &["a", "b", "c"];
