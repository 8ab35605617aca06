use std::time::Duration;

use paceline_limiter::engine::{Bucket, Rule, Wait, charge, reserve, settle};
use paceline_limiter::quota::{Algorithm, Cost, Margin, Quota, SettleAt};

use super::{S, at, fresh, rules};

fn tpm(amount: u64, settle: SettleAt) -> (Vec<Rule>, Vec<Bucket>) {
    let rules = rules(&Quota::new().tpm(amount), Algorithm::SlidingWindow, Margin::NONE, settle);
    let buckets = fresh(&rules);
    (rules, buckets)
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

#[test]
fn usage_counts_for_exactly_one_window() {
    let (rules, mut buckets) = tpm(10, SettleAt::Send);
    reserve(&rules, &mut buckets, &tokens(4), at(100 * S)).unwrap();
    reserve(&rules, &mut buckets, &tokens(6), at(130 * S)).unwrap();
    let wait =
        |cost| reserve(&rules, &mut buckets.clone(), &tokens(cost), at(131 * S)).unwrap_err().wait;
    assert_eq!(wait(4), Wait::At(at(160 * S)));
    assert_eq!(wait(5), Wait::At(at(190 * S)));
    assert_eq!(wait(11), Wait::Never);
    let used = |now| buckets[0].level(&rules[0], now).used;
    assert_eq!(
        [used(at(160 * S - 1)), used(at(160 * S)), used(at(190 * S - 1)), used(at(190 * S))],
        [10, 6, 6, 0]
    );
    assert_eq!(buckets[0].level(&rules[0], at(131 * S)).fresh_at, at(190 * S));
}

#[test]
fn margin_extends_sliding_window() {
    let rule =
        |margin| rules(&Quota::new().tpm(10), Algorithm::SlidingWindow, margin, SettleAt::Send);
    let rules = rule(Margin::default());
    let mut buckets = fresh(&rules);
    reserve(&rules, &mut buckets, &tokens(10), at(100 * S)).unwrap();
    let wait = reserve(&rules, &mut buckets, &tokens(1), at(101 * S)).unwrap_err().wait;
    assert_eq!(wait, Wait::At(at(160 * S + S / 2)));
}

#[test]
fn settle_after_window_ends_keeps_later_usage() {
    let (rules, mut buckets) = tpm(10, SettleAt::Send);
    reserve(&rules, &mut buckets, &tokens(10), at(100 * S)).unwrap();
    reserve(&rules, &mut buckets, &tokens(10), at(160 * S)).unwrap();
    settle(&rules, &mut buckets, at(100 * S), &tokens(10), &tokens(3), at(161 * S));
    assert_eq!(buckets[0].level(&rules[0], at(161 * S)).used, 10);
    settle(&rules, &mut buckets, at(160 * S), &tokens(10), &tokens(4), at(162 * S));
    assert_eq!(buckets[0].level(&rules[0], at(162 * S)).used, 4);
}

#[test]
fn hold_counts_immediately_and_window_starts_at_settlement() {
    let (rules, mut buckets) = tpm(10, SettleAt::End);
    reserve(&rules, &mut buckets, &tokens(8), at(100 * S)).unwrap();
    let wait =
        |b: &[Bucket], now| reserve(&rules, &mut b.to_vec(), &tokens(3), now).unwrap_err().wait;
    assert_eq!(wait(&buckets, at(170 * S)), Wait::Unknown);
    settle(&rules, &mut buckets, at(100 * S), &tokens(8), &tokens(8), at(170 * S));
    assert_eq!(wait(&buckets, at(170 * S)), Wait::At(at(230 * S)));
}

#[test]
fn usage_above_reservation_becomes_debt() {
    let (rules, mut buckets) = tpm(10, SettleAt::Send);
    reserve(&rules, &mut buckets, &tokens(8), at(100 * S)).unwrap();
    settle(&rules, &mut buckets, at(100 * S), &tokens(8), &tokens(25), at(110 * S));
    let level = buckets[0].level(&rules[0], at(110 * S));
    assert_eq!((level.used, level.available), (25, 0));
    let wait = reserve(&rules, &mut buckets, &tokens(1), at(110 * S)).unwrap_err().wait;
    assert_eq!(wait, Wait::At(at(160 * S)));
}

#[test]
fn fixed_window_settling_at_end_becomes_sliding() {
    let quota = Quota::new().tpm(10);
    let rules = rules(&quota, Algorithm::FixedWindow, Margin::NONE, SettleAt::End);
    let mut buckets = fresh(&rules);
    for (sent, end) in [(100, 101), (150, 159)] {
        reserve(&rules, &mut buckets, &tokens(5), at(sent * S)).unwrap();
        settle(&rules, &mut buckets, at(sent * S), &tokens(5), &tokens(5), at(end * S));
    }
    let wait =
        |cost| reserve(&rules, &mut buckets.clone(), &tokens(cost), at(160 * S)).unwrap_err().wait;
    assert_eq!([wait(5), wait(6)], [Wait::At(at(161 * S)), Wait::At(at(219 * S))]);
}

#[test]
fn many_huge_charges_need_bounded_memory() {
    let (rules, mut buckets) = tpm(10, SettleAt::Send);
    for i in 0..10_000 {
        charge(&rules, &mut buckets, &tokens(u64::MAX), at(100 * S + i % 7));
    }
    let kept = buckets[0].save(&rules[0], at(100 * S)).taken.len();
    assert!(kept < 500, "{kept} entries");
    assert_eq!(buckets[0].level(&rules[0], at(100 * S)).used, u64::MAX);
}

#[test]
fn long_log_drops_entries_at_most_a_256th_window_late() {
    let (rules, mut buckets) = tpm(1_000_000, SettleAt::Send);
    let step = Duration::from_millis(10).as_nanos() as u64;
    for i in 0..3_000 {
        charge(&rules, &mut buckets, &tokens(1), at(100 * S + i * step));
    }
    let late = Duration::from_millis(235).as_nanos() as u64;
    for now in (160..192).map(|s| s * S) {
        let since =
            |now: u64| (0..3_000).filter(|i| 100 * S + i * step + 60 * S > now).count() as u64;
        let used = buckets[0].level(&rules[0], at(now)).used;
        assert!((since(now)..=since(now - late)).contains(&used), "{used} at {now}");
    }
}
