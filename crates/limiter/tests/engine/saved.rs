use paceline_limiter::engine::{Bucket, Rule, Saved, Wait, charge, reserve, settle};
use paceline_limiter::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, SettleAt};

use super::{S, at, fresh, rules};

const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];

fn tpm(amount: u64, algorithm: Algorithm, settle: SettleAt) -> Vec<Rule> {
    rules(&Quota::new().tpm(amount), algorithm, Margin::NONE, settle)
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

#[test]
fn restored_bucket_equals_saved_one() {
    for algorithm in ALGORITHMS {
        let rules = tpm(600, algorithm, SettleAt::Send);
        let mut buckets = fresh(&rules);
        charge(&rules, &mut buckets, &tokens(100), at(1_000 * S));
        charge(&rules, &mut buckets, &tokens(300), at(1_011 * S));
        let saved = buckets[0].save(&rules[0], at(1_020 * S));
        let mut restored = Bucket::new(&rules[0]);
        restored.absorb(&rules[0], &saved, at(1_033 * S));
        for now in (1_033..1_090).map(|s| s * S) {
            let (old, new) =
                (buckets[0].level(&rules[0], at(now)), restored.level(&rules[0], at(now)));
            assert_eq!(new, old, "{algorithm:?} at {now}");
        }
    }
}

#[test]
fn held_amount_counts_as_used_after_restore() {
    for algorithm in ALGORITHMS {
        let rules = tpm(600, algorithm, SettleAt::End);
        let mut buckets = fresh(&rules);
        reserve(&rules, &mut buckets, &tokens(200), at(1_000 * S)).unwrap();
        let saved = buckets[0].save(&rules[0], at(1_000 * S));
        assert_eq!(saved, Saved { taken: vec![], held: 200 });
        let mut restored = Bucket::new(&rules[0]);
        restored.absorb(&rules[0], &saved, at(1_002 * S));
        let level = restored.level(&rules[0], at(1_002 * S));
        assert_eq!((level.used, level.held, level.available), (200, 0, 400), "{algorithm:?}");
    }
}

#[test]
fn saved_usage_of_the_future_counts_as_of_now() {
    for algorithm in ALGORITHMS {
        let rules = tpm(600, algorithm, SettleAt::Send);
        let saved = Saved { taken: vec![(at(2_000 * S), 600)], held: 0 };
        let mut restored = Bucket::new(&rules[0]);
        restored.absorb(&rules[0], &saved, at(1_000 * S));
        assert_eq!(restored.level(&rules[0], at(1_000 * S)).used, 600);
        assert_eq!(restored.level(&rules[0], at(1_060 * S)).used, 0, "{algorithm:?}");
    }
}

#[test]
fn changed_limit_keeps_used_and_held_amounts() {
    for (algorithm, amount) in ALGORITHMS.into_iter().flat_map(|a| [(a, 900), (a, 300)]) {
        let (old, new) =
            (tpm(600, algorithm, SettleAt::End), tpm(amount, algorithm, SettleAt::End));
        let mut buckets = fresh(&old);
        charge(&old, &mut buckets, &tokens(150), at(1_000 * S));
        reserve(&old, &mut buckets, &tokens(250), at(1_000 * S)).unwrap();
        let mut carried = [buckets[0].carry(&old[0], &new[0], at(1_000 * S))];
        let level = carried[0].level(&new[0], at(1_000 * S));
        let available = u64::saturating_sub(amount, 400);
        assert_eq!((level.used, level.held, level.available), (150, 250, available));
        settle(&new, &mut carried, at(1_000 * S), &tokens(250), &tokens(20), at(1_000 * S));
        let level = carried[0].level(&new[0], at(1_000 * S));
        assert_eq!((level.used, level.held, level.available), (170, 0, amount - 170));
    }
}

#[test]
fn changed_concurrency_limit_keeps_requests_in_flight() {
    let rules = |amount| {
        let quota = Quota::new().concurrency(amount);
        rules(&quota, Algorithm::SlidingWindow, Margin::NONE, SettleAt::Send)
    };
    let mut buckets = fresh(&rules(3));
    (0..3).for_each(|_| reserve(&rules(3), &mut buckets, &Cost::new(), at(S)).unwrap());
    let mut carried = [buckets[0].carry(&rules(3)[0], &rules(2)[0], at(S))];
    let wait =
        |b: &[Bucket]| reserve(&rules(2), &mut b.to_vec(), &Cost::new(), at(S)).map_err(|s| s.wait);
    for _ in 0..2 {
        assert_eq!(wait(&carried), Err(Wait::Unknown));
        settle(&rules(2), &mut carried, at(S), &Cost::new(), &Cost::new(), at(S));
    }
    assert_eq!(wait(&carried), Ok(()));
}

#[test]
fn raised_token_bucket_keeps_debt() {
    let old = tpm(60, Algorithm::TokenBucket, SettleAt::Send);
    let limit = Limit::per_minute(Dimension::Tokens, 120).map(|limit| limit.with_burst(10));
    let quota = Quota::new().limit(limit);
    let new = rules(&quota, Algorithm::TokenBucket, Margin::NONE, SettleAt::Send);
    let mut buckets = fresh(&old);
    charge(&old, &mut buckets, &tokens(90), at(1_000 * S));
    let carried = buckets[0].carry(&old[0], &new[0], at(1_010 * S));
    // 80 are missing from 10; the refill is 2 per second.
    let level = carried.level(&new[0], at(1_010 * S));
    assert_eq!((level.used, level.available, level.fresh_at), (80, 0, at(1_050 * S)));
    let wait = reserve(&new, &mut [carried], &tokens(1), at(1_010 * S)).unwrap_err().wait;
    assert_eq!(wait, Wait::At(at(1_045 * S + S / 2)));
}

#[test]
fn changed_token_bucket_keeps_fractions_of_tokens() {
    let (old, new) = (
        tpm(60, Algorithm::TokenBucket, SettleAt::Send),
        tpm(90, Algorithm::TokenBucket, SettleAt::Send),
    );
    let mut buckets = fresh(&old);
    charge(&old, &mut buckets, &tokens(3), at(1_000 * S));
    // After half a second 2.5 of them are missing; the new refill is 1.5 per second.
    let now = 1_000 * S + S / 2;
    let carried = buckets[0].carry(&old[0], &new[0], at(now));
    assert_eq!(carried.level(&new[0], at(now)).fresh_at, at(now + (5 * S).div_ceil(3)));
    let back = carried.carry(&new[0], &old[0], at(now));
    assert_eq!(back.level(&old[0], at(now)), buckets[0].level(&old[0], at(now)));
}

#[test]
fn changed_token_bucket_still_waits_for_margin() {
    let rules = |amount| {
        let quota = Quota::new().tpm(amount);
        rules(&quota, Algorithm::TokenBucket, Margin::default(), SettleAt::Send)
    };
    let (old, new) = (rules(60), rules(120));
    let mut buckets = fresh(&old);
    charge(&old, &mut buckets, &tokens(10), at(1_000 * S));
    // Full at 1,010 s; 2 % of 120 tokens take another 1.2 s.
    let carried = buckets[0].carry(&old[0], &new[0], at(1_010 * S));
    let wait = reserve(&new, &mut [carried], &tokens(120), at(1_010 * S)).unwrap_err().wait;
    assert_eq!(wait, Wait::At(at(1_011 * S + S / 5)));
}
