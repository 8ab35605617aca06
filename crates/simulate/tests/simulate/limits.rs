//! Admission by the limits, and its times.

use std::time::Duration;

use paceline_simulate::{LimitAlgorithm, LimitKind, Provider, Settings};
use proptest::prelude::*;

use super::SECOND;
use paceline_testing::full::full_or;

const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 24 * 60 * MINUTE;

fn provider(rpm: u64, algorithm: LimitAlgorithm) -> Provider {
    Provider::new(Settings::default().with_rpm(rpm).with_algorithm(algorithm))
}

fn admits(provider: &mut Provider, now: u64) -> bool {
    provider.admit(now, "gpt-4o", 1, 0).is_ok()
}

#[test]
fn token_bucket_refills_continuously() {
    // Full at 0, then one every 20 s: the fourth is admitted at 20 s, not a nanosecond earlier.
    let mut provider = provider(3, LimitAlgorithm::TokenBucket);
    assert!((0..3).all(|_| admits(&mut provider, 0)));
    assert!(!admits(&mut provider, 20 * SECOND - 1));
    assert!(admits(&mut provider, 20 * SECOND));
    assert!(!admits(&mut provider, 40 * SECOND - 1));
    assert!(admits(&mut provider, 40 * SECOND));
}

#[test]
fn token_bucket_refill_keeps_fractions() {
    // 7 per minute, requested at odd intervals: exactly 7 per minute after the burst, the last at 10
    // min.
    let mut provider = provider(7, LimitAlgorithm::TokenBucket);
    let steps = (0..).map(|i| i * 123_456_789).take_while(|&now| now < 10 * MINUTE);
    let admitted = steps.filter(|&now| admits(&mut provider, now)).count();
    assert_eq!(admitted, 7 + 69);
}

#[test]
fn sliding_window_holds_in_every_window() {
    let mut provider = provider(2, LimitAlgorithm::SlidingWindow);
    assert!(admits(&mut provider, 0));
    assert!(admits(&mut provider, 30 * SECOND));
    assert!(!admits(&mut provider, MINUTE - 1));
    assert!(admits(&mut provider, MINUTE));
    assert!(!admits(&mut provider, 90 * SECOND - 1));
    assert!(admits(&mut provider, 90 * SECOND));
}

#[test]
fn fixed_window_restarts_at_next_use() {
    let mut provider = provider(2, LimitAlgorithm::FixedWindow);
    let at = |seconds: u64| seconds * SECOND;
    assert!(admits(&mut provider, at(50)));
    assert!(admits(&mut provider, at(109)));
    assert!(!admits(&mut provider, at(110) - 1));
    // The next window is from 200 s to 260 s, not from 170 s.
    assert!(admits(&mut provider, at(200)));
    assert!(admits(&mut provider, at(231)));
    assert!(!admits(&mut provider, at(260) - 1));
    assert!(admits(&mut provider, at(260)));
}

#[test]
fn clock_window_restarts_on_the_clock() {
    let mut provider = provider(2, LimitAlgorithm::ClockWindow);
    assert!(admits(&mut provider, 50 * SECOND));
    assert!(admits(&mut provider, 59 * SECOND));
    assert!(!admits(&mut provider, MINUTE - 1));
    assert!(admits(&mut provider, MINUTE));
    assert!(admits(&mut provider, 2 * MINUTE - 1));
    assert!(!admits(&mut provider, 2 * MINUTE - 1));
    assert!(admits(&mut provider, 2 * MINUTE));
}

#[test]
fn shorter_window_holds_part_of_the_amount() {
    for algorithm in ALGORITHMS.into_iter().skip(1) {
        let settings = Settings::default().with_rpm(60).with_window(Duration::from_secs(3));
        let mut provider = Provider::new(settings.with_algorithm(algorithm));
        assert!((0..3).all(|_| admits(&mut provider, 0)), "{algorithm:?}");
        let refusal = provider.admit(0, "gpt-4o", 1, 0).expect_err("the window is used up");
        assert_eq!((refusal.limit, refusal.used), (60, 3), "{algorithm:?}");
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(3)), "{algorithm:?}");
        assert!(admits(&mut provider, 3 * SECOND), "{algorithm:?}");
    }
}

#[test]
fn refusal_reports_longest_wait_and_charges_no_limit() {
    let settings = Settings::default().with_rpm(60).with_tpm(10_000);
    let mut provider = Provider::new(settings);
    provider.admit(0, "gpt-4o", 1, 8_782).expect("the request fits");
    let refusal = provider.admit(0, "gpt-4o", 1, 8_172).expect_err("the request exceeds the limit");
    assert_eq!(refusal.kind, LimitKind::TokensPerMinute);
    assert_eq!((refusal.limit, refusal.used, refusal.requested), (10_000, 8_782, 8_172));
    // OpenAI's example: (8782 + 8172 - 10000) / 10000 x 60 s.
    assert_eq!(refusal.retry_after, Some(Duration::from_millis(41_724)));
    assert!((0..59).all(|_| provider.admit(0, "gpt-4o", 1, 0).is_ok()));
    assert!(provider.admit(0, "gpt-4o", 1, 0).is_err());
}

#[test]
fn amount_above_the_limit_never_fits() {
    for algorithm in ALGORITHMS {
        let settings = Settings::default().with_tpm(100).with_algorithm(algorithm);
        let mut provider = Provider::new(settings);
        let refusal =
            provider.admit(0, "gpt-4o", 1, 101).expect_err("the request exceeds the capacity");
        assert_eq!(refusal.retry_after, None);
        assert!(provider.admit(0, "gpt-4o", 1, 100).is_ok());
    }
}

#[test]
fn short_burst_limits_bucket_capacity() {
    let settings = Settings::default().with_rpm(120).with_burst(Duration::from_secs(1));
    let mut provider = Provider::new(settings);
    assert!((0..2).all(|_| admits(&mut provider, 0)));
    assert!(!admits(&mut provider, 0));
    assert!(admits(&mut provider, SECOND / 2));
}

#[test]
fn each_model_has_separate_limits() {
    let mut provider = provider(1, LimitAlgorithm::TokenBucket);
    assert!(provider.admit(0, "gpt-4o", 1, 0).is_ok());
    assert!(provider.admit(0, "gpt-4o", 1, 0).is_err());
    assert!(provider.admit(0, "o3", 1, 0).is_ok());
    let stats = provider.stats();
    assert_eq!((stats.total.received, stats.total.admitted, stats.total.refused), (3, 2, 1));
    assert_eq!((stats.models["gpt-4o"].refused, stats.models["o3"].refused), (1, 0));
}

#[test]
fn extreme_amounts_and_times_do_not_panic() {
    for algorithm in ALGORITHMS {
        let settings = Settings::default().with_rpm(u64::MAX).with_tpm(u64::MAX).with_rpd(1);
        let mut provider = Provider::new(settings.with_algorithm(algorithm));
        for now in [u64::MAX, 0, u64::MAX] {
            let _ = provider.admit(now, "gpt-4o", 1, u64::MAX);
        }
        assert_eq!(provider.stats().total.admitted, 1);
    }
}

const ALGORITHMS: [LimitAlgorithm; 4] = [
    LimitAlgorithm::TokenBucket,
    LimitAlgorithm::SlidingWindow,
    LimitAlgorithm::FixedWindow,
    LimitAlgorithm::ClockWindow,
];

/// A log of all use, from which admission is computed by brute force.
#[derive(Default)]
struct History(Vec<(u64, u64)>);

impl History {
    fn fits(&self, algorithm: LimitAlgorithm, amount: u64, window: u64, now: u64, n: u64) -> bool {
        let amount = u128::from(amount);
        let used = match algorithm {
            LimitAlgorithm::TokenBucket => return self.fits_bucket(amount, window, now, n),
            LimitAlgorithm::SlidingWindow => self.since(now.saturating_sub(window - 1)),
            LimitAlgorithm::FixedWindow => self.since(self.anchor(window, now)),
            LimitAlgorithm::ClockWindow => self.since(now - now % window),
        };
        used + u128::from(n) <= amount
    }

    /// Returns whether the use since any past time is at most a full bucket plus its refill.
    fn fits_bucket(&self, amount: u128, window: u64, now: u64, n: u64) -> bool {
        let window = u128::from(window);
        let bound = |at: u64| amount * window + amount * u128::from(now - at);
        let starts = self.0.iter().map(|&(at, _)| at).chain([now]);
        let mut taken = starts.map(|at| (at, self.since(at) + u128::from(n)));
        taken.all(|(at, taken)| taken * window <= bound(at))
    }

    fn since(&self, start: u64) -> u128 {
        self.0.iter().filter(|(at, _)| *at >= start).map(|&(_, n)| u128::from(n)).sum()
    }

    /// Returns the start of the window that contains `now`.
    fn anchor(&self, window: u64, now: u64) -> u64 {
        let uses = self.0.iter().filter(|(_, n)| *n > 0).map(|&(at, _)| at).chain([now]);
        uses.reduce(|anchor, at| if at - anchor >= window { at } else { anchor }).unwrap_or(now)
    }
}

fn algorithm() -> impl Strategy<Value = LimitAlgorithm> {
    prop::sample::select(ALGORITHMS.to_vec())
}

/// Gaps in nanoseconds and tokens of a schedule: bursts, odd intervals, and whole windows.
fn schedule() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![
        3 => Just(0),
        4 => 0..20 * SECOND,
        1 => Just(MINUTE),
        1 => MINUTE - 1..MINUTE + 2,
        1 => 0..DAY,
    ];
    prop::collection::vec((gap, 0..120_u64), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(full_or(50_000, 5_000)))]

    /// A request is admitted exactly if every limit has enough by brute force, atomically; if a
    /// refusal has a wait, that nanosecond is the first that fits.
    #[test]
    fn admission_matches_brute_force(
        algorithm in algorithm(),
        (rpm, tpm, rpd) in (1..12_u64, 1..150_u64, 1..25_u64),
        schedule in schedule(),
    ) {
        let settings = Settings::default().with_rpm(rpm).with_tpm(tpm).with_rpd(rpd);
        let mut provider = Provider::new(settings.with_algorithm(algorithm));
        let (mut requests, mut tokens) = (History::default(), History::default());
        let mut now = 0;
        for (gap, n) in schedule {
            now += gap;
            let fits = |requests: &History, tokens: &History, now| {
                requests.fits(algorithm, rpm, MINUTE, now, 1)
                    && tokens.fits(algorithm, tpm, MINUTE, now, n)
                    && requests.fits(algorithm, rpd, DAY, now, 1)
            };
            match provider.admit(now, "m", 1, n) {
                Ok(()) => {
                    prop_assert!(fits(&requests, &tokens, now));
                    requests.0.push((now, 1));
                    tokens.0.push((now, n));
                }
                Err(refusal) => {
                    prop_assert!(!fits(&requests, &tokens, now));
                    match refusal.retry_after {
                        None => prop_assert!(n > tpm),
                        Some(wait) => {
                            let then = now + wait.as_nanos() as u64;
                            prop_assert!(fits(&requests, &tokens, then));
                            prop_assert!(!fits(&requests, &tokens, then - 1));
                        }
                    }
                }
            }
        }
    }
}
