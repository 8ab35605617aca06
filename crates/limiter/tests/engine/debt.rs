use paceline_limiter::Timestamp;
use paceline_limiter::engine::{Bucket, Rule, Wait, check, reserve, settle};
use paceline_limiter::quota::{Algorithm, Cost, Margin, Quota, SettleAt};

use super::{S, at, fresh, rules};

fn tpm(algorithm: Algorithm, margin: Margin, settle: SettleAt) -> (Vec<Rule>, Vec<Bucket>) {
    let rules = rules(&Quota::new().tpm(60).with_debt(), algorithm, margin, settle);
    let buckets = fresh(&rules);
    (rules, buckets)
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

fn wait(rules: &[Rule], buckets: &[Bucket], amount: u64, now: Timestamp) -> Option<Wait> {
    check(rules, buckets, &tokens(amount), now).err().map(|short| short.wait)
}

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::TokenBucket,
    Algorithm::SlidingWindow,
    Algorithm::FixedWindow,
    Algorithm::ClockWindow,
];

#[test]
fn cost_above_limit_with_debt_is_admitted_when_unused() {
    for algorithm in ALGORITHMS {
        let (rules, mut buckets) = tpm(algorithm, Margin::NONE, SettleAt::Send);
        assert_eq!(wait(&rules, &buckets, 61, at(120 * S)), None);
        reserve(&rules, &mut buckets, &tokens(1), at(120 * S)).unwrap();
        let fresh = buckets[0].level(&rules[0], at(121 * S)).fresh_at;
        if algorithm != Algorithm::TokenBucket {
            assert_eq!(wait(&rules, &buckets, 61, at(121 * S)), Some(Wait::At(fresh)));
            assert_eq!(wait(&rules, &buckets, u64::MAX, at(121 * S)), Some(Wait::At(fresh)));
        }
        assert_eq!(wait(&rules, &buckets, 61, fresh), None, "{algorithm:?}");
    }
}

#[test]
fn cost_above_limit_without_debt_never_fits() {
    for algorithm in ALGORITHMS {
        let quota = Quota::new().tpm(60);
        let rules = rules(&quota, algorithm, Margin::NONE, SettleAt::Send);
        assert_eq!(wait(&rules, &fresh(&rules), 61, at(120 * S)), Some(Wait::Never));
    }
}

#[test]
fn token_bucket_in_debt_refills() {
    let (rules, mut buckets) = tpm(Algorithm::TokenBucket, Margin::NONE, SettleAt::Send);
    reserve(&rules, &mut buckets, &tokens(180), at(100 * S)).unwrap();
    let level = buckets[0].level(&rules[0], at(100 * S));
    assert_eq!((level.used, level.available, level.fresh_at), (180, 0, at(280 * S)));
    assert_eq!(wait(&rules, &buckets, 1, at(100 * S)), Some(Wait::At(at(221 * S))));
    assert_eq!(wait(&rules, &buckets, 61, at(100 * S)), Some(Wait::At(at(280 * S))));
}

#[test]
fn window_counts_debt_until_window_ends() {
    for algorithm in ALGORITHMS.into_iter().skip(1) {
        let (rules, mut buckets) = tpm(algorithm, Margin::NONE, SettleAt::Send);
        reserve(&rules, &mut buckets, &tokens(180), at(120 * S)).unwrap();
        assert_eq!(buckets[0].level(&rules[0], at(121 * S)).used, 180);
        assert_eq!(
            wait(&rules, &buckets, 1, at(121 * S)),
            Some(Wait::At(at(180 * S))),
            "{algorithm:?}"
        );
    }
}

#[test]
fn margin_for_debt_equals_margin_for_full_limit() {
    let (rules, mut buckets) = tpm(Algorithm::TokenBucket, Margin::default(), SettleAt::Send);
    reserve(&rules, &mut buckets, &tokens(30), at(100 * S)).unwrap();
    let whole = wait(&rules, &buckets, 60, at(101 * S));
    assert_eq!(whole, Some(Wait::At(at(131 * S + S / 5))));
    assert_eq!(wait(&rules, &buckets, 600, at(101 * S)), whole);
}

#[test]
fn held_debt_refuses_all_other_costs() {
    for algorithm in ALGORITHMS {
        let (rules, mut buckets) = tpm(algorithm, Margin::NONE, SettleAt::End);
        let big = tokens(600);
        reserve(&rules, &mut buckets, &big, at(120 * S)).unwrap();
        assert_eq!(wait(&rules, &buckets, 1, at(500 * S)), Some(Wait::Unknown), "{algorithm:?}");
        assert_eq!(wait(&rules, &buckets, 600, at(500 * S)), Some(Wait::Unknown), "{algorithm:?}");
        settle(&rules, &mut buckets, at(120 * S), &big, &tokens(10), at(500 * S));
        assert_eq!(wait(&rules, &buckets, 50, at(500 * S)), None, "{algorithm:?}");
    }
}

#[test]
fn request_without_reservation_is_charged_actual_cost() {
    for algorithm in ALGORITHMS {
        let (rules, mut buckets) = tpm(algorithm, Margin::NONE, SettleAt::Send);
        reserve(&rules, &mut buckets, &tokens(0), at(120 * S)).unwrap();
        settle(&rules, &mut buckets, at(120 * S), &tokens(0), &tokens(50), at(125 * S));
        assert_eq!(buckets[0].level(&rules[0], at(125 * S)).used, 50, "{algorithm:?}");
        // The same after later usage.
        reserve(&rules, &mut buckets, &tokens(5), at(126 * S)).unwrap();
        settle(&rules, &mut buckets, at(125 * S), &tokens(0), &tokens(4), at(126 * S));
        let refilled = if algorithm == Algorithm::TokenBucket { 1 } else { 0 };
        assert_eq!(buckets[0].level(&rules[0], at(126 * S)).used, 59 - refilled, "{algorithm:?}");
    }
}
