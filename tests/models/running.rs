//! Changes to a limiter that runs, against permits in flight and against waiters.

use tollgate::limiter::{AcquireError, Code, UnknownKey};
use tollgate::quota::{Cost, Dimension, Quota};

use super::{
    assert_nobody_there, block_on, builder, check, level, limiter, poll_once, together, tokens,
};

#[test]
fn a_raise_lets_the_first_in_and_totals_stay_exact() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100).concurrency(3));
        let [settled, released] = [(); 2].map(|()| limiter.try_acquire("k", &tokens(40)).unwrap());
        let raise = {
            let limiter = limiter.clone();
            move || {
                limiter.quotas().set("k", &Quota::new().tpm(90).concurrency(3));
                limiter.quotas().set("k", &Quota::new().tpm(110).concurrency(4));
            }
        };
        let wait = {
            let limiter = limiter.clone();
            move || drop(block_on(limiter.acquire("k", &tokens(80))).unwrap())
        };
        let leave = {
            let limiter = limiter.clone();
            move || {
                let granted = poll_once(limiter.acquire("k", &tokens(70)));
                granted.into_iter().for_each(|permit| permit.unwrap().release());
            }
        };
        together([
            Box::new(raise),
            Box::new(wait),
            Box::new(leave),
            Box::new(move || settled.settle(&tokens(30))),
            Box::new(move || released.release()),
        ]);
        let stats = limiter.stats("k");
        assert_eq!(level(&stats, &Dimension::Tokens), (30 + 80, 0));
        assert_eq!(stats.limits.iter().map(|limit| limit.limit).collect::<Vec<_>>(), [110, 4]);
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn whoever_waits_for_a_quota_that_is_removed_is_rejected_and_nobody_is_forgotten() {
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
        let wait = {
            let limiter = limiter.clone();
            move || match block_on(limiter.acquire("k", &Cost::new())).unwrap_err() {
                AcquireError::Removed { key } => assert_eq!(key, "k"),
                // It came after the quota had gone.
                AcquireError::Refused(refused) => assert_eq!(refused.code, Code::UnknownModel),
                error => panic!("{error}"),
            }
        };
        let remove = {
            let limiter = limiter.clone();
            move || {
                assert!(limiter.quotas().remove("k"));
                assert!(limiter.try_acquire("k", &Cost::new()).is_err());
            }
        };
        together([Box::new(stay), Box::new(wait), Box::new(remove)]);
        drop(held);
        assert_eq!(limiter.stats("k").waiting, 0);
        limiter.quotas().set("k", &Quota::new().concurrency(1));
        let _held = limiter.try_acquire("k", &Cost::new()).unwrap();
    });
}

#[test]
fn a_permit_of_a_removed_quota_gives_nothing_back_to_the_one_that_came_after() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let old = limiter.try_acquire("k", &Cost::new()).unwrap();
        let replace = {
            let limiter = limiter.clone();
            move || {
                limiter.quotas().remove("k");
                limiter.quotas().set("k", &Quota::new().concurrency(1));
                let _new = limiter.try_acquire("k", &Cost::new()).unwrap();
                assert!(limiter.try_acquire("k", &Cost::new()).is_err(), "there is room for one");
            }
        };
        together([Box::new(replace), Box::new(move || drop(old))]);
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn a_reset_wakes_the_first_and_keeps_what_is_in_flight() {
    check(|| {
        let limiter = limiter(Quota::new().tpd(100).concurrency(4));
        drop(limiter.try_acquire("k", &tokens(50)).unwrap());
        let held = limiter.try_acquire("k", &tokens(40)).unwrap();
        let wait = {
            let limiter = limiter.clone();
            move || drop(block_on(limiter.acquire("k", &tokens(60))).unwrap())
        };
        let leave = {
            let limiter = limiter.clone();
            move || {
                let granted = poll_once(limiter.acquire("k", &tokens(80)));
                granted.into_iter().for_each(|permit| permit.unwrap().release());
            }
        };
        let reset = {
            let limiter = limiter.clone();
            move || limiter.reset("k")
        };
        together([
            Box::new(wait),
            Box::new(leave),
            Box::new(reset),
            Box::new(move || held.release()),
        ]);
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (60, 0));
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn closing_rejects_whoever_waits_and_lets_what_is_in_flight_end() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        let held = limiter.try_acquire("k", &tokens(90)).unwrap();
        let ending = limiter.try_acquire("k", &tokens(10)).unwrap();
        let wait = {
            let limiter = limiter.clone();
            // There is no room before the end.
            move || {
                let rejected = block_on(limiter.acquire("k", &tokens(10))).unwrap_err();
                assert_eq!(rejected, AcquireError::Closed);
            }
        };
        let close = {
            let limiter = limiter.clone();
            move || {
                block_on(limiter.close());
                let refused = limiter.try_acquire("k", &tokens(1)).unwrap_err();
                assert_eq!(refused.code, Code::Closed);
            }
        };
        together([
            Box::new(wait.clone()),
            Box::new(wait),
            Box::new(close),
            Box::new(move || ending.settle(&tokens(7))),
        ]);
        held.release();
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (7, 0));
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn who_waits_when_its_key_comes_under_a_shared_quota_goes_on_where_it_is() {
    check(|| {
        let one = Quota::new().concurrency(1);
        let limiter = builder().quota("m-*", one.clone()).build().unwrap();
        let held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        let wait = {
            let limiter = limiter.clone();
            move || drop(block_on(limiter.acquire("m-1", &Cost::new())).unwrap())
        };
        let share = {
            let limiter = limiter.clone();
            move || {
                limiter.quotas().set("m-*", &one.shared());
                limiter.prune();
            }
        };
        together([
            Box::new(wait.clone()),
            Box::new(wait),
            Box::new(share),
            Box::new(move || drop(held)),
        ]);
        assert_nobody_there(&limiter, "m-1");
        let _held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        assert!(limiter.try_acquire("m-2", &Cost::new()).is_err(), "the two share their buckets");
    });
}
