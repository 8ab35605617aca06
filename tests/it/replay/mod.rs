//! Production traffic, replayed in virtual time against quotas that are short of it.
//!
//! Each request arrives when it was recorded, waits for the limiter, travels 0 to 400 ms, and is
//! judged by the simulated provider in order of arrival there.

mod trace;
mod world;
use tollgate::provider::{COMPATIBLE, OPENAI};
use tollgate::quota::{self, Margin, Quota};
use tollgate_simulate::{LimitAlgorithm, Settings};

use trace::Request;
use world::{Charged, Outcome, Setup, ideal, replay};

use tollgate_testing::full::full_or;

const TPM: u64 = 450_000;
/// The traces and their numbers of requests; the short form of a test replays the first.
const TRACES: [(&str, usize); 2] = [("code", 8_819), ("conversation", 19_366)];

/// Seconds, in nanoseconds.
const S: u64 = 1_000_000_000;

#[tokio::test(start_paused = true)]
async fn a_token_bucket_is_used_up_while_work_waits_and_never_refuses() {
    let setup = known(LimitAlgorithm::TokenBucket);
    for (name, trace) in traces() {
        for seed in 0..full_or(5, 1) {
            let outcome = judged(name, &trace, &Setup { seed, ..setup.clone() }).await;
            let utilization = outcome.utilization(TPM);
            assert!((0.99..1.001).contains(&utilization), "{name}: {utilization}");
            // The margin is 2 % of the burst, 1.2 s of refill; a millisecond is the timer's.
            let late = latest(&outcome, &trace, &setup);
            assert!(late <= S * 12 / 10 + S / 500, "{name}: {late} ns behind the ideal client");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sliding_window_never_refuses_and_keeps_up() {
    let setup = known(LimitAlgorithm::SlidingWindow);
    for (name, trace) in traces() {
        let outcome = judged(name, &trace, &setup).await;
        // 500 ms of 60 s are the margin: 0.83 %.
        let late = latest(&outcome, &trace, &setup);
        assert!(late <= outcome.busy / 100, "{name}: {late} ns behind the ideal client");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fixed_window_never_refuses_and_keeps_up() {
    let setup = known(LimitAlgorithm::FixedWindow);
    for (name, trace) in traces() {
        let outcome = judged(name, &trace, &setup).await;
        // The ideal client's windows start elsewhere: up to a window is due to that alone.
        let late = latest(&outcome, &trace, &setup);
        assert!(late <= outcome.busy / 100 + 60 * S, "{name}: {late} ns behind the ideal client");
    }
}

#[tokio::test(start_paused = true)]
async fn usage_that_is_only_known_at_the_end_is_never_refused() {
    let algorithms = [
        (None, LimitAlgorithm::TokenBucket),
        (None, LimitAlgorithm::SlidingWindow),
        (None, LimitAlgorithm::FixedWindow),
        (Some(quota::Algorithm::TokenBucket), LimitAlgorithm::TokenBucket),
        (Some(quota::Algorithm::FixedWindow), LimitAlgorithm::FixedWindow),
    ];
    for (name, trace) in traces() {
        for (ours, theirs) in algorithms {
            for charged in [Charged::AtArrival, Charged::AtEnd] {
                let setup = usage(ours, theirs, charged);
                let outcome = judged(name, &trace, &setup).await;
                // What is held for 5 s at 1.5 times the usage can't be used: about a tenth.
                let utilization = outcome.utilization(TPM);
                assert!(utilization >= 0.8, "{name}, {setup:?}: {utilization}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_judge_refuses_a_client_that_leaves_no_margin() {
    for algorithm in
        [LimitAlgorithm::TokenBucket, LimitAlgorithm::SlidingWindow, LimitAlgorithm::FixedWindow]
    {
        let setup = Setup { margin: Margin::NONE, ..known(algorithm) };
        for (name, trace) in traces() {
            let outcome = replay(&trace, &setup).await;
            assert!(!outcome.refusals.is_empty(), "{name}, {algorithm:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_judge_refuses_a_client_that_takes_usage_for_charged_when_sent() {
    for algorithm in
        [LimitAlgorithm::TokenBucket, LimitAlgorithm::SlidingWindow, LimitAlgorithm::FixedWindow]
    {
        let setup = Setup { charged: Charged::AtEnd, ..known(algorithm) };
        for (name, trace) in traces() {
            let outcome = replay(&trace, &setup).await;
            assert!(!outcome.refusals.is_empty(), "{name}, {algorithm:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_judge_refuses_a_client_that_reserves_less_than_the_usage() {
    let setup = usage(None, LimitAlgorithm::SlidingWindow, Charged::AtEnd);
    let setup = Setup { reserved: 500..1_001, ..setup };
    for (name, trace) in traces() {
        let outcome = replay(&trace, &setup).await;
        assert!(!outcome.refusals.is_empty(), "{name}");
    }
}

/// Charges that are known at admission, counted alike on both sides.
fn known(algorithm: LimitAlgorithm) -> Setup {
    let ours = match algorithm {
        LimitAlgorithm::TokenBucket => quota::Algorithm::TokenBucket,
        LimitAlgorithm::SlidingWindow => quota::Algorithm::SlidingWindow,
        LimitAlgorithm::FixedWindow => quota::Algorithm::FixedWindow,
    };
    let quota = Quota::new().rpm(10_000).tpm(TPM).with_algorithm(ours);
    Setup {
        profile: OPENAI,
        quota,
        margin: Margin::default(),
        provider: Settings::default().with_rpm(10_000).with_tpm(TPM).with_algorithm(algorithm),
        reserved: 1_000..1_001,
        charged: Charged::AtArrival,
        seed: 0,
    }
}

/// Charges by usage: up to twice of it is reserved, and held until the answer has ended. `ours` is
/// the profile's algorithm where it is `None`.
fn usage(ours: Option<quota::Algorithm>, theirs: LimitAlgorithm, charged: Charged) -> Setup {
    let quota = Quota::new().rpm(10_000).tpm(TPM);
    let quota = ours.map_or(quota.clone(), |ours| quota.with_algorithm(ours));
    Setup { profile: COMPATIBLE, quota, reserved: 1_000..2_001, charged, ..known(theirs) }
}

/// Replays a trace, says how it went, and fails on a refusal.
async fn judged(name: &str, trace: &[Request], setup: &Setup) -> Outcome {
    let outcome = replay(trace, setup).await;
    println!(
        "{name}, {} requests, {}, {:?} at the provider, charged {:?}, seed {}: {} refusals, \
         {} waited, {:.1} s busy, utilization {:.4}, at most {:.3} s behind the ideal client",
        trace.len(),
        setup.profile.name(),
        setup.provider.algorithm,
        setup.charged,
        setup.seed,
        outcome.refusals.len(),
        outcome.waited,
        outcome.busy as f64 / S as f64,
        outcome.utilization(TPM),
        latest(&outcome, trace, setup) as f64 / S as f64,
    );
    assert!(outcome.waited > trace.len() / 3, "the quota is short of the work");
    assert_eq!(outcome.refusals, [""; 0], "{name}, {setup:?}");
    outcome
}

/// How long after the ideal client the most delayed request was granted.
fn latest(outcome: &Outcome, trace: &[Request], setup: &Setup) -> u64 {
    let ideal = ideal(trace, &setup.provider);
    let late = outcome.granted.iter().zip(ideal).map(|(ours, ideal)| ours.saturating_sub(ideal));
    late.max().unwrap_or(0)
}

fn traces() -> impl Iterator<Item = (&'static str, Vec<Request>)> {
    TRACES.into_iter().take(full_or(2, 1)).filter_map(|(name, requests)| {
        let trace = trace::read(name)?;
        assert_eq!(trace.len(), requests, "{name}");
        Some((name, trace))
    })
}
