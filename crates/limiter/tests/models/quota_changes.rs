//! Quota changes and resets, concurrently with permits in flight and with waiters.

use paceline_limiter::limiter::{AcquireError, Code, UnknownKey};
use paceline_limiter::quota::{Cost, Dimension, Quota};
use shuttle::thread;

use super::{
    assert_unused, block_on, builder, check, level, limiter, poll_once, requests, run_threads,
    thread_of, tokens,
};

#[test]
fn quota_raised_while_permits_end_admits_first_waiter() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100).concurrency(3));
        let [settled, released] = [(); 2].map(|()| limiter.try_acquire("k", &tokens(40)).unwrap());
        let raise = thread_of(&limiter, |limiter| {
            limiter.quotas().set("k", &Quota::new().tpm(90).concurrency(3)).unwrap();
            limiter.quotas().set("k", &Quota::new().tpm(110).concurrency(4)).unwrap();
        });
        let wait = thread_of(&limiter, |limiter| {
            drop(block_on(limiter.acquire("k", &tokens(80))).unwrap());
        });
        let leave = thread_of(&limiter, |limiter| {
            let granted = poll_once(limiter.acquire("k", &tokens(70)));
            granted.into_iter().for_each(|permit| permit.unwrap().release());
        });
        run_threads([
            raise,
            wait,
            leave,
            Box::new(move || settled.settle(&tokens(30))),
            Box::new(move || released.release()),
        ]);
        let stats = limiter.stats("k");
        assert_eq!(level(&stats, &Dimension::Tokens), (30 + 80, 0));
        assert_eq!(stats.limits.iter().map(|limit| limit.limit).collect::<Vec<_>>(), [110, 4]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn waiters_of_removed_quota_are_rejected() {
    check(|| {
        let quota = Quota::new().concurrency(1);
        let unknown = UnknownKey::Refuse;
        let limiter = builder().quota("k", quota).unknown_key(unknown).build().unwrap();
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let mut early = limiter.acquire("k", &Cost::new());
        assert!(early.arrive().is_none());
        let stay = move || {
            let rejected = block_on(early).unwrap_err();
            assert!(matches!(rejected, AcquireError::Removed { .. }), "{rejected}");
        };
        let wait = thread_of(&limiter, |limiter| {
            match block_on(limiter.acquire("k", &Cost::new())).unwrap_err() {
                AcquireError::Removed { key } => assert_eq!(key, "k"),
                // It arrived after the quota was removed.
                AcquireError::Refused(refused) => assert_eq!(refused.code, Code::UnknownModel),
                error => panic!("{error}"),
            }
        });
        let remove = thread_of(&limiter, |limiter| {
            assert!(limiter.quotas().remove("k"));
            assert!(limiter.try_acquire("k", &Cost::new()).is_err());
        });
        run_threads([Box::new(stay), wait, remove]);
        drop(held);
        assert_eq!(limiter.stats("k").waiting, 0);
        limiter.quotas().set("k", &Quota::new().concurrency(1)).unwrap();
        let _held = limiter.try_acquire("k", &Cost::new()).unwrap();
    });
}

#[test]
fn permit_of_removed_quota_dropped_keeps_next_quota_held() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let old = limiter.try_acquire("k", &Cost::new()).unwrap();
        let replace = thread_of(&limiter, |limiter| {
            limiter.quotas().remove("k");
            limiter.quotas().set("k", &Quota::new().concurrency(1)).unwrap();
            let _new = limiter.try_acquire("k", &Cost::new()).unwrap();
            assert!(limiter.try_acquire("k", &Cost::new()).is_err(), "one is admitted");
        });
        run_threads([replace, Box::new(move || drop(old))]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn key_reset_wakes_first_waiter_and_keeps_permits() {
    check(|| {
        let limiter = limiter(Quota::new().tpd(100).concurrency(4));
        drop(limiter.try_acquire("k", &tokens(50)).unwrap());
        let held = limiter.try_acquire("k", &tokens(40)).unwrap();
        let wait = thread_of(&limiter, |limiter| {
            drop(block_on(limiter.acquire("k", &tokens(60))).unwrap());
        });
        let leave = thread_of(&limiter, |limiter| {
            let granted = poll_once(limiter.acquire("k", &tokens(80)));
            granted.into_iter().for_each(|permit| permit.unwrap().release());
        });
        run_threads([
            wait,
            leave,
            thread_of(&limiter, |limiter| limiter.reset("k")),
            Box::new(move || held.release()),
        ]);
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (60, 0));
        assert_unused(&limiter, "k");
    });
}

#[test]
fn permit_granted_between_two_resets_refunds_only_own_charge() {
    check(|| {
        let limiter = limiter(Quota::new().rpm(5));
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        let reset = thread::spawn(thread_of(&limiter, |limiter| limiter.reset("k")));
        limiter.reset("k");
        let early = limiter.try_acquire("k", &Cost::new()).unwrap();
        reset.join().unwrap();
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        // Its charge is refunded if it still counts; the charge of the other permit remains.
        early.release();
        assert_eq!(requests(&limiter, "k"), 1);
    });
}

#[test]
fn permit_granted_between_two_quotas_frees_only_own_amount() {
    check(|| {
        let two = || Quota::new().concurrency(2);
        let limiter = limiter(two());
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        let change = thread_of(&limiter, move |limiter| limiter.quotas().set("k", &two()).unwrap());
        let change = thread::spawn(change);
        limiter.quotas().remove("k");
        let early = limiter.try_acquire("k", &Cost::new()).unwrap();
        limiter.quotas().set("k", &two()).unwrap();
        change.join().unwrap();
        let _late = limiter.try_acquire("k", &Cost::new()).unwrap();
        early.release();
        assert_eq!(level(&limiter.stats("k"), &Dimension::Concurrency).1, 1);
    });
}
