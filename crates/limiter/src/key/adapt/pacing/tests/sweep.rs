//! Random providers.

use super::provider::{WindowKind, bucket, window};
use super::random::Random;
use super::scenario::{RetryAfter, Scenario};
use super::simulation::run;
use crate::quota::Dimension;
use paceline_testing::full::full_or;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Requests,
    Tokens,
    Window,
}

/// A random provider.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) scenario: Scenario,
    pub(super) kind: Kind,
    /// Requests per second.
    pub(super) rate: f64,
    /// Seconds of the rate that a bucket holds.
    pub(super) burst: f64,
    pub(super) name: String,
}

impl Provider {
    /// Returns the requests that are sent at the limit's rate until the first refusal arrives.
    pub(super) fn flight(&self) -> f64 {
        1.0 + self.rate * (1.2 * self.scenario.refusal + 0.005)
    }
}

pub(super) fn provider(random: &mut Random, seed: u64) -> Provider {
    let ten_to = |random: &mut Random, low, high| 10_f64.powf(random.between(low, high));
    let rate = ten_to(random, -0.3, 2.2);
    let burst = ten_to(random, -0.7, 1.78);
    let latency = ten_to(random, -1.7, 1.0);
    let refusal = latency.min(ten_to(random, -1.7, -0.3));
    use RetryAfter::*;
    let retry_after = random.pick(&[WholeSeconds, Absent, Milliseconds, Zero, AlwaysSixty]);
    let kind =
        random.pick(&[Kind::Requests, Kind::Requests, Kind::Requests, Kind::Tokens, Kind::Window]);
    let factor = random.pick(&[None, Some(1.0), Some(2.0), Some(10.0)]);
    let window_kind =
        random.pick(&[WindowKind::Sliding, WindowKind::FromFirstUse, WindowKind::Aligned]);
    let is_named = random.part() < 0.5;
    let seconds = if rate < 40.0 { 300.0 } else { 150.0 };
    let (dimension, unit) =
        if kind == Kind::Tokens { (Dimension::Tokens, 1500.0) } else { (Dimension::Requests, 1.0) };
    let limit = match kind {
        Kind::Requests => bucket(rate, burst, 0.0),
        Kind::Tokens => bucket(rate * unit, burst, 9000.0),
        Kind::Window => window((rate * 60.0).round().max(5.0), window_kind),
    };
    let mean = if kind == Kind::Tokens { 1_700.0 } else { 1.0 };
    let demand = (rate * unit * (seconds + burst)).min(512.0 / latency * seconds * mean);
    let scenario = Scenario {
        limits: vec![(dimension.clone(), limit)],
        configured: factor.map(|factor| (dimension, rate * unit * factor)).into_iter().collect(),
        seconds,
        latency: (latency * 0.5, latency * 1.5),
        refusal,
        retry_after,
        is_named,
        error: 0.3,
        seed,
        demand,
        ..Scenario::new()
    };
    let window_name = if kind == Kind::Window { format!("{window_kind:?}") } else { String::new() };
    let name = format!(
        "{kind:?}{window_name} {rate:.1}/s b{burst:.1} lat{latency:.2} rf{refusal:.2} {retry_after:?} told {factor:?} named {is_named}"
    );
    Provider { scenario, kind, rate, burst, name }
}

/// At least nine of ten random providers are used in full with few refusals.
#[test]
fn random_providers_are_used_with_few_refusals() {
    let (seeds, cases) = full_or((7..=18, 150), (7..=7, 100));
    let (mut missed, mut all) = (Vec::new(), 0);
    for seed in seeds {
        let mut random = Random::new(seed);
        for case in 0..cases {
            let provider = provider(&mut random, case);
            let outcome = run(&provider.scenario);
            let least = if provider.kind == Kind::Window { 0.85 } else { 0.9 };
            let allowed = (0.03 * outcome.accepted as f64).max(30.0);
            if outcome.used < least || outcome.refusals as f64 > allowed {
                missed.push(format!("seed {seed}: {}: {outcome:?}", provider.name));
            }
            all += 1;
        }
    }
    assert!(missed.len() * 10 <= all, "{} of {all}\n{}", missed.len(), missed.join("\n"));
}

/// A job of any random provider is answered in full, and earns a few flights of refusals, each as long as the
/// first refusal takes. The first ones are sent at up to four times the limit.
#[test]
fn job_of_random_provider_is_answered_in_full() {
    let mut random = Random::new(20);
    for case in 0..full_or(300, 60) {
        let provider = provider(&mut random, case);
        let scenario = Scenario {
            arrivals: vec![(0.0, 200), (30.0, 100)],
            seconds: 3_000.0,
            ..provider.scenario.clone()
        };
        let outcome = run(&scenario);
        let name = &provider.name;
        assert_eq!((outcome.accepted, outcome.unanswered), (300, 0), "{name}: {outcome:?}");
        let flights = 10.0 + outcome.events as f64 * provider.flight();
        assert!(outcome.refusals as f64 <= 4.0 * flights, "{name}: {outcome:?}");
    }
}
