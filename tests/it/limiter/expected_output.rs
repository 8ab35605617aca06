//! The expected output of a key's requests.

use proptest::prelude::*;

use super::builder;

#[test]
fn expected_output_needs_five_samples() {
    let limiter = builder().build().unwrap();
    for seen in 1..=4 {
        limiter.feedback().output_seen("k", seen * 100);
        assert_eq!(limiter.feedback().expected_output("k"), None);
    }
    limiter.feedback().output_seen("k", 500);
    assert_eq!(limiter.feedback().expected_output("k"), Some(500));
    assert_eq!(limiter.feedback().expected_output("other"), None);
}

#[test]
fn expected_output_covers_the_quantile() {
    let limiter = builder().build().unwrap();
    (1..=60).for_each(|tokens| limiter.feedback().output_seen("k", tokens));
    assert_eq!(limiter.feedback().expected_output("k"), Some(54));
    let median = builder().output_quantile(0.5).build().unwrap();
    (1..=60).rev().for_each(|tokens| median.feedback().output_seen("k", tokens));
    assert_eq!(median.feedback().expected_output("k"), Some(30));
}

#[test]
fn expected_output_uses_last_64_samples() {
    let limiter = builder().output_quantile(1.0).build().unwrap();
    limiter.feedback().output_seen("k", 9_000);
    (0..63).for_each(|_| limiter.feedback().output_seen("k", 10));
    assert_eq!(limiter.feedback().expected_output("k"), Some(9_000));
    limiter.feedback().output_seen("k", 10);
    assert_eq!(limiter.feedback().expected_output("k"), Some(10));
}

#[test]
fn flood_of_keys_evicts_only_unused_keys() {
    let limiter = builder().build().unwrap();
    let see = |key: &str| (0..5).for_each(|_| limiter.feedback().output_seen(key, 7));
    see("left");
    for flood in 0..12_000 {
        see(&format!("key-{flood}"));
        if flood % 1_000 == 0 {
            see("used");
        }
    }
    assert_eq!(limiter.feedback().expected_output("left"), None);
    assert_eq!(limiter.feedback().expected_output("used"), Some(7));
    let kept =
        (0..12_000).filter(|n| limiter.feedback().expected_output(&format!("key-{n}")).is_some());
    let kept = kept.count();
    assert!((4_999..=10_000).contains(&kept), "{kept}");
}

#[test]
fn quantile_outside_0_to_1_is_refused() {
    for (quantile, shown) in [(0.0, "0"), (1.1, "1.1"), (f64::NAN, "NaN"), (-1.0, "-1")] {
        let error = builder().output_quantile(quantile).build().unwrap_err();
        let text = format!(
            "quantile of outputs: {shown} is out of range; set a value above 0 and at most 1"
        );
        assert_eq!(error.to_string(), text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The expected output is the least sample that covers at least the quantile of the recent
    /// samples.
    #[test]
    fn expected_output_is_least_sample_covering_quantile(
        seen in proptest::collection::vec(0..2_000_u64, 5..200),
        percent in 1..=100_u8,
    ) {
        let limiter = builder().output_quantile(f64::from(percent) / 100.0).build().unwrap();
        seen.iter().for_each(|&tokens| limiter.feedback().output_seen("k", tokens));
        let recent = &seen[seen.len().saturating_sub(64)..];
        let expected = limiter.feedback().expected_output("k").unwrap();
        let covered = |by: u64| recent.iter().filter(|&&tokens| tokens <= by).count() * 100;
        let share = recent.len() * usize::from(percent);
        prop_assert!(recent.contains(&expected));
        prop_assert!(covered(expected) >= share);
        prop_assert!(expected == 0 || covered(expected - 1) < share);
    }
}
