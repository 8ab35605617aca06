//! Jobs of 900 requests against limits that are hard to find in a short time.

use super::cases::requests;
use super::scenario::Scenario;
use super::simulation::run;

/// Returns the mean of the ideal duration divided by the real one, and the most refusals of a run.
fn used(ideal: f64, scenario: &Scenario) -> (f64, u64) {
    let job = Scenario {
        latency: (0.05, 0.8),
        arrivals: vec![(0.0, 900)],
        seconds: 600.0,
        workers: 50,
        ..scenario.clone()
    };
    let outcomes: Vec<_> = (1..=8).map(|seed| run(&Scenario { seed, ..job.clone() })).collect();
    let used = outcomes.iter().map(|outcome| ideal / outcome.end).sum::<f64>() / 8.0;
    (used, outcomes.iter().map(|outcome| outcome.refusals).max().unwrap_or(0))
}

#[test]
fn short_job_uses_few_requests_in_flight() {
    for (is_named, concurrency) in [true, false].into_iter().flat_map(|n| [4, 6, 8].map(|c| (n, c)))
    {
        let scenario = Scenario { concurrency: Some(concurrency), is_named, ..Scenario::new() };
        let (used, refusals) = used(900.0 * 0.425 / f64::from(concurrency), &scenario);
        assert!(used >= 0.9 && refusals <= 30, "{is_named} {concurrency}: {used:.2}, {refusals}");
    }
}

/// What is sent in the half second before the first refusal is known is refused too.
#[test]
fn short_job_with_slow_refusals_uses_its_limit() {
    for burst in [1.0, 10.0] {
        let scenario = Scenario { refusal: 0.5, ..requests(20.0, burst) };
        let (used, refusals) = used((900.0 - 20.0 * burst) / 20.0, &scenario);
        assert!(used >= 0.9 && refusals <= 50, "burst {burst}: {used:.2}, {refusals}");
    }
}
