//! Configuration of an agent: a bus, an id, and the limiter's `Reduction`.

use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{Agent, LocalBus};
use paceline::limiter::{BuildError, Limiter, ManualClock, Reduction};
use paceline::quota::Quota;

use super::rig::{buckets, builder};
use super::s05::amounts;

/// Returns the limit of a key of 100 requests per minute at every `interval` after a reduction, until it
/// has recovered.
fn steps(reduction: Reduction, interval: Duration) -> Vec<u64> {
    let clock = ManualClock::new();
    let builder = builder().reduction(reduction).quota("k", buckets(Quota::new().rpm(100)));
    let limiter = builder.clock(clock.clone()).build().unwrap();
    limiter.feedback().reduce("k", "received 429 response");
    let mut steps = Vec::new();
    for _ in 0..20 {
        steps.push(amounts(&limiter)[0].0);
        clock.advance(interval);
    }
    let recovered = steps.iter().position(|amount| *amount == 100).unwrap();
    assert!(steps[recovered..].iter().all(|amount| *amount == 100), "above the limit: {steps:?}");
    steps.truncate(recovered + 1);
    steps
}

#[test]
fn s09_agent_needs_an_id() {
    let limiter = Limiter::builder().build().unwrap();
    for id in ["", " \t"] {
        let error = Agent::join(&limiter, Arc::new(LocalBus::new()), id).unwrap_err();
        let text = "agent id: must not be empty; give each agent on the bus a unique id";
        assert_eq!(error.to_string(), text);
    }
    assert!(Agent::join(&limiter, Arc::new(LocalBus::new()), "agent-1").is_ok());
}

#[test]
fn s09_default_halves_and_recovers_a_tenth_every_30_s() {
    let steps = steps(Reduction::default(), Duration::from_secs(30));
    assert_eq!(steps, [50, 55, 60, 66, 72, 79, 86, 94, 100]);
}

#[test]
fn s09_each_parameter_can_be_set() {
    let interval = Duration::from_secs(10);
    let reduction = Reduction::new().factor(0.2).interval(interval).recovery_factor(2.0);
    assert_eq!(steps(reduction, interval), [20, 40, 80, 100]);
}

#[test]
fn s09_invalid_reduction_is_refused_with_range() {
    let build = |reduction| Limiter::builder().reduction(reduction).build().unwrap_err();
    let new = Reduction::new();
    let cases = [new.factor(0.0), new.factor(1.0), new.factor(f64::NAN), new.recovery_factor(1.0)];
    for reduction in cases.into_iter().chain([new.interval(Duration::ZERO)]) {
        assert!(matches!(build(reduction), BuildError::OutOfRange { .. }), "{reduction:?}");
    }
}
