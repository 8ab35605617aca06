use paceline_limiter::engine::{Bucket, Rule, Wait, release, reserve, settle};
use paceline_limiter::quota::{Algorithm, Cost, Margin, Quota, SettleAt};
use std::time::Duration;

use super::{S, at, fresh, rules};

fn tpm(amount: u64, margin: Margin) -> (Vec<Rule>, Vec<Bucket>) {
    let quota = Quota::new().tpm(amount);
    let rules = rules(&quota, Algorithm::FixedWindow, margin, SettleAt::Send);
    let buckets = fresh(&rules);
    (rules, buckets)
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

#[test]
fn fixed_window_starts_at_first_use_after_previous_end() {
    let (rules, mut buckets) = tpm(10, Margin::NONE);
    reserve(&rules, &mut buckets, &tokens(1), at(107 * S)).unwrap();
    reserve(&rules, &mut buckets, &tokens(9), at(166 * S)).unwrap();
    let wait =
        |b: &[Bucket], now| reserve(&rules, &mut b.to_vec(), &tokens(1), now).unwrap_err().wait;
    assert_eq!(wait(&buckets, at(167 * S - 1)), Wait::At(at(167 * S)));
    reserve(&rules, &mut buckets, &tokens(10), at(200 * S)).unwrap();
    assert_eq!(wait(&buckets, at(230 * S)), Wait::At(at(260 * S)));
    assert_eq!(buckets[0].level(&rules[0], at(230 * S)).fresh_at, at(260 * S));
}

#[test]
fn fixed_window_is_closed_for_margin_around_end() {
    let (rules, mut buckets) = tpm(10, Margin::default());
    reserve(&rules, &mut buckets, &tokens(1), at(100 * S)).unwrap();
    let answer = |now| reserve(&rules, &mut buckets.clone(), &tokens(1), now).map_err(|s| s.wait);
    let (closes, opens) = (160 * S - S / 2, 160 * S + S / 2);
    assert_eq!(answer(at(closes - 1)), Ok(()));
    assert_eq!(answer(at(closes)), Err(Wait::At(at(opens))));
    assert_eq!(answer(at(opens - 1)), Err(Wait::At(at(opens))));
    assert_eq!(answer(at(opens)), Ok(()));
}

#[test]
fn correction_applies_to_window_of_send_time() {
    let (rules, mut buckets) = tpm(10, Margin::NONE);
    reserve(&rules, &mut buckets, &tokens(10), at(100 * S)).unwrap();
    reserve(&rules, &mut buckets, &tokens(5), at(160 * S)).unwrap();
    settle(&rules, &mut buckets, at(100 * S), &tokens(10), &tokens(1), at(161 * S));
    assert_eq!(buckets[0].level(&rules[0], at(161 * S)).used, 5);
    settle(&rules, &mut buckets, at(160 * S), &tokens(5), &tokens(12), at(162 * S));
    let level = buckets[0].level(&rules[0], at(162 * S));
    assert_eq!((level.used, level.available), (12, 0));
}

#[test]
fn fixed_window_with_only_released_request_has_not_started() {
    let (rules, mut buckets) = tpm(10, Margin::NONE);
    reserve(&rules, &mut buckets, &tokens(4), at(100 * S)).unwrap();
    release(&rules, &mut buckets, at(100 * S), &tokens(4), at(105 * S));
    reserve(&rules, &mut buckets, &tokens(10), at(150 * S)).unwrap();
    let wait = reserve(&rules, &mut buckets, &tokens(1), at(209 * S)).unwrap_err().wait;
    assert_eq!(wait, Wait::At(at(210 * S)));
}

#[test]
fn release_of_first_request_closes_window_at_possible_end() {
    let (rules, mut buckets) = tpm(10, Margin::NONE);
    reserve(&rules, &mut buckets, &tokens(1), at(100 * S)).unwrap();
    // The provider's window starts with this request at 103 s and ends at 163 s.
    reserve(&rules, &mut buckets, &tokens(1), at(103 * S)).unwrap();
    release(&rules, &mut buckets, at(100 * S), &tokens(1), at(105 * S));
    let answer =
        |cost, now| reserve(&rules, &mut buckets.clone(), &tokens(cost), now).map_err(|s| s.wait);
    assert_eq!(answer(9, at(160 * S - 1)), Ok(()));
    let Err(Wait::At(opens)) = answer(9, at(160 * S)) else { panic!("may be after 163 s") };
    assert!((at(165 * S)..at(165 * S + S / 100)).contains(&opens), "{opens}");
    assert_eq!(answer(1, opens - Duration::from_nanos(1)), Err(Wait::At(opens)));
    assert_eq!(answer(10, opens), Ok(()));
}
