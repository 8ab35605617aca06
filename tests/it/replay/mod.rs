//! Production traffic replayed in virtual time against quotas below its demand.
//!
//! Each request arrives at its recorded time, waits for the limiter, travels 0 to 400 ms, and is
//! admitted or refused by the simulated provider in order of arrival there.

mod trace;
mod world;

use paceline::provider::{COMPATIBLE, OPENAI};
use paceline::quota::{self, Margin, Quota};
use paceline_simulate::{LimitAlgorithm, Settings};

use trace::Request;
use world::{Charged, Outcome, Setup, ideal_grants, replay};

use paceline_testing::full::full_or;

const TPM: u64 = 450_000;
/// The traces and their numbers of requests; the short form of a test replays the first [`SHORT`] of the first.
const TRACES: [(&str, usize); 2] = [("code", 8_819), ("conversation", 19_366)];

/// The requests of the short form.
const SHORT: usize = 3_000;

/// One second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

#[tokio::test(start_paused = true)]
async fn token_bucket_is_fully_used_and_never_refused() {
    let setup = charged_at_send(LimitAlgorithm::TokenBucket);
    for (name, trace) in traces() {
        for seed in 0..full_or(5, 1) {
            let outcome =
                replay_without_refusal(name, &trace, &Setup { seed, ..setup.clone() }).await;
            let utilization = outcome.utilization(TPM);
            assert!((0.99..1.001).contains(&utilization), "{name}: {utilization}");
            // The margin is 2 % of the burst, 1.2 s of refill; the timer adds a millisecond.
            let late = max_delay(&outcome, &trace, &setup);
            assert!(
                late <= SECOND * 12 / 10 + SECOND / 500,
                "{name}: {late} ns behind the ideal client"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sliding_window_is_never_refused_and_keeps_up() {
    let setup = charged_at_send(LimitAlgorithm::SlidingWindow);
    for (name, trace) in traces() {
        let outcome = replay_without_refusal(name, &trace, &setup).await;
        // The margin is 500 ms of 60 s: 0.83 %.
        let late = max_delay(&outcome, &trace, &setup);
        assert!(late <= outcome.busy / 100, "{name}: {late} ns behind the ideal client");
    }
}

#[tokio::test(start_paused = true)]
async fn fixed_window_is_never_refused_and_keeps_up() {
    let setup = charged_at_send(LimitAlgorithm::FixedWindow);
    for (name, trace) in traces() {
        let outcome = replay_without_refusal(name, &trace, &setup).await;
        // The windows of the ideal client start at other times, which alone costs up to a window.
        let late = max_delay(&outcome, &trace, &setup);
        assert!(
            late <= outcome.busy / 100 + 60 * SECOND,
            "{name}: {late} ns behind the ideal client"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn usage_at_the_end_of_a_token_bucket_is_never_refused() {
    usage_known_only_at_the_end_is_never_refused(None, LimitAlgorithm::TokenBucket).await;
}

#[tokio::test(start_paused = true)]
async fn usage_at_the_end_of_a_sliding_window_is_never_refused() {
    usage_known_only_at_the_end_is_never_refused(None, LimitAlgorithm::SlidingWindow).await;
}

#[tokio::test(start_paused = true)]
async fn usage_at_the_end_of_a_fixed_window_is_never_refused() {
    usage_known_only_at_the_end_is_never_refused(None, LimitAlgorithm::FixedWindow).await;
}

#[tokio::test(start_paused = true)]
async fn usage_at_the_end_of_a_known_token_bucket_is_never_refused() {
    let ours = Some(quota::Algorithm::TokenBucket);
    usage_known_only_at_the_end_is_never_refused(ours, LimitAlgorithm::TokenBucket).await;
}

#[tokio::test(start_paused = true)]
async fn usage_at_the_end_of_a_known_fixed_window_is_never_refused() {
    let ours = Some(quota::Algorithm::FixedWindow);
    usage_known_only_at_the_end_is_never_refused(ours, LimitAlgorithm::FixedWindow).await;
}

#[tokio::test(start_paused = true)]
async fn client_without_margin_is_refused() {
    for algorithm in
        [LimitAlgorithm::TokenBucket, LimitAlgorithm::SlidingWindow, LimitAlgorithm::FixedWindow]
    {
        let setup = Setup { margin: Margin::NONE, ..charged_at_send(algorithm) };
        for (name, trace) in traces() {
            let outcome = replay(&trace, &setup).await;
            assert!(!outcome.refusals.is_empty(), "{name}, {algorithm:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn client_assuming_charge_at_send_is_refused() {
    for algorithm in
        [LimitAlgorithm::TokenBucket, LimitAlgorithm::SlidingWindow, LimitAlgorithm::FixedWindow]
    {
        let setup = Setup { charged: Charged::AtEnd, ..charged_at_send(algorithm) };
        for (name, trace) in traces() {
            let outcome = replay(&trace, &setup).await;
            assert!(!outcome.refusals.is_empty(), "{name}, {algorithm:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn client_reserving_less_than_usage_is_refused() {
    let setup = charged_by_usage(None, LimitAlgorithm::SlidingWindow, Charged::AtEnd);
    let setup = Setup { reserved: 500..1_001, ..setup };
    for (name, trace) in traces() {
        let outcome = replay(&trace, &setup).await;
        assert!(!outcome.refusals.is_empty(), "{name}");
    }
}

/// Replays the traces with charges by usage, counted by the provider at arrival and at the end.
async fn usage_known_only_at_the_end_is_never_refused(
    ours: Option<quota::Algorithm>,
    theirs: LimitAlgorithm,
) {
    for (name, trace) in traces() {
        for charged in [Charged::AtArrival, Charged::AtEnd] {
            let setup = charged_by_usage(ours, theirs, charged);
            let outcome = replay_without_refusal(name, &trace, &setup).await;
            // The amount held for 5 s at 1.5 times the usage cannot be used: about a tenth.
            let utilization = outcome.utilization(TPM);
            assert!(utilization >= 0.8, "{name}, {setup:?}: {utilization}");
        }
    }
}

/// Returns a setup with charges that are known when a request is sent, and the same algorithm on both
/// sides.
fn charged_at_send(algorithm: LimitAlgorithm) -> Setup {
    let ours = match algorithm {
        LimitAlgorithm::TokenBucket => quota::Algorithm::TokenBucket,
        LimitAlgorithm::SlidingWindow => quota::Algorithm::SlidingWindow,
        LimitAlgorithm::FixedWindow => quota::Algorithm::FixedWindow,
        LimitAlgorithm::ClockWindow => quota::Algorithm::ClockWindow,
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

/// Returns a setup with charges by usage: up to twice the usage is reserved and held until the
/// answer ends. `ours` defaults to the algorithm of the profile.
fn charged_by_usage(
    ours: Option<quota::Algorithm>,
    theirs: LimitAlgorithm,
    charged: Charged,
) -> Setup {
    let quota = Quota::new().rpm(10_000).tpm(TPM);
    let quota = ours.map_or(quota.clone(), |ours| quota.with_algorithm(ours));
    Setup { profile: COMPATIBLE, quota, reserved: 1_000..2_001, charged, ..charged_at_send(theirs) }
}

/// Replays a trace, prints the outcome and fails on a refusal.
async fn replay_without_refusal(name: &str, trace: &[Request], setup: &Setup) -> Outcome {
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
        outcome.busy as f64 / SECOND as f64,
        outcome.utilization(TPM),
        max_delay(&outcome, trace, setup) as f64 / SECOND as f64,
    );
    assert!(outcome.waited > trace.len() / 3, "the quota exceeds the demand");
    assert_eq!(outcome.refusals, [""; 0], "{name}, {setup:?}");
    outcome
}

/// Returns the largest delay of a request behind the ideal client.
fn max_delay(outcome: &Outcome, trace: &[Request], setup: &Setup) -> u64 {
    let ideal = ideal_grants(trace, &setup.provider);
    let late = outcome.granted.iter().zip(ideal).map(|(ours, ideal)| ours.saturating_sub(ideal));
    late.max().unwrap_or(0)
}

fn traces() -> impl Iterator<Item = (&'static str, Vec<Request>)> {
    TRACES.into_iter().take(full_or(2, 1)).filter_map(|(name, requests)| {
        let mut trace = trace::read(name)?;
        assert_eq!(trace.len(), requests, "{name}");
        trace.truncate(full_or(requests, SHORT));
        Some((name, trace))
    })
}
