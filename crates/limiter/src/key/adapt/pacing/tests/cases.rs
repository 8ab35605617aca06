//! Fixed cases: the use of a limit and the number of refusals that are allowed in each.

use super::provider::{Load, WindowKind, bucket, loaded, window};
use super::scenario::{Outcome, RetryAfter, Scenario};
use super::simulation::run;
use crate::quota::Dimension;
use paceline_testing::full::full_or;

const REQUESTS: Dimension = Dimension::Requests;
const TOKENS: Dimension = Dimension::Tokens;

/// A scenario, and the least use and the most refusals that are allowed in it.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) scenario: Scenario,
    pub(super) least: f64,
    /// The refusals that are always allowed, and the part of the accepted requests.
    pub(super) refusals: (u64, f64),
}

impl Case {
    fn new(name: impl Into<String>, scenario: Scenario) -> Self {
        Self { name: name.into(), scenario, least: 0.9, refusals: (30, 0.03) }
    }

    fn least(self, least: f64) -> Self {
        Self { least, ..self }
    }

    pub(super) fn is_met(&self, outcome: &Outcome) -> bool {
        let allowed = (self.refusals.0 as f64).max(self.refusals.1 * outcome.accepted as f64);
        outcome.used >= self.least && outcome.refusals as f64 <= allowed
    }
}

pub(super) fn requests(rate: f64, burst: f64) -> Scenario {
    Scenario { limits: vec![(REQUESTS, bucket(rate, burst, 0.0))], ..Scenario::new() }
}

/// A limit of tokens for `rate` requests of 1,500 tokens per second.
fn tokens(rate: f64, burst: f64) -> Scenario {
    Scenario { limits: vec![(TOKENS, bucket(rate * 1500.0, burst, 9000.0))], ..Scenario::new() }
}

fn windows(rate: f64, kind: WindowKind) -> Scenario {
    Scenario { limits: vec![(REQUESTS, window(rate * 60.0, kind))], ..Scenario::new() }
}

fn told(rate: f64) -> Vec<(Dimension, f64)> {
    vec![(REQUESTS, rate)]
}

fn unknown() -> Vec<Case> {
    let mut cases = Vec::new();
    for rate in [0.5, 2.0, 20.0, 500.0] {
        for burst in [0.2, 1.0, 10.0, 60.0] {
            let seconds = if rate < 100.0 { 300.0 } else { 90.0 };
            let scenario = Scenario { seconds, ..requests(rate, burst) };
            cases.push(Case::new(format!("told nothing, {rate}/s, burst {burst} s"), scenario));
        }
    }
    use RetryAfter::*;
    for retry_after in [Absent, Milliseconds, Zero, AlwaysSixty] {
        let name = format!("told nothing, 20/s, burst 1 s, Retry-After {retry_after:?}");
        cases.push(Case::new(name, Scenario { retry_after, ..requests(20.0, 1.0) }));
    }
    for rate in [2.0, 20.0] {
        for latency in [(5.0, 5.0), (2.0, 10.0)] {
            let scenario = Scenario { latency, refusal: 0.1, ..requests(rate, 1.0) };
            cases.push(Case::new(format!("told nothing, {rate}/s, latency {latency:?}"), scenario));
        }
    }
    for refusal in [0.5, 2.0] {
        let scenario = Scenario { refusal, latency: (1.0, 3.0), ..requests(20.0, 10.0) };
        cases.push(Case::new(format!("told nothing, 20/s, 429s take {refusal} s"), scenario));
    }
    cases
}

fn configured() -> Vec<Case> {
    let mut cases = Vec::new();
    for factor in [0.5, 2.0, 10.0] {
        for burst in [1.0, 10.0] {
            let scenario = Scenario { configured: told(20.0 * factor), ..requests(20.0, burst) };
            let case = Case::new(format!("told x{factor}, 20/s, burst {burst} s"), scenario);
            cases.push(if factor < 1.0 { case.least(0.45) } else { case });
        }
    }
    for rate in [0.5, 20.0, 500.0] {
        let seconds = if rate < 100.0 { 300.0 } else { 90.0 };
        let scenario = Scenario { configured: told(rate), seconds, ..requests(rate, 60.0) };
        cases.push(Case::new(format!("told right, {rate}/s"), scenario));
    }
    let slow = Scenario { configured: told(20.0), latency: (8.0, 12.0), ..requests(20.0, 60.0) };
    cases.push(Case::new("told right, latency 10 s", slow));
    let by_tokens = Scenario { configured: vec![(TOKENS, 30_000.0)], ..tokens(20.0, 60.0) };
    cases.push(Case::new("told right, tokens", by_tokens));
    for case in cases.iter_mut().filter(|case| case.name.starts_with("told right")) {
        (case.least, case.refusals) = (0.98, (0, 0.0));
    }
    for burst in [1.0, 10.0] {
        let scenario =
            Scenario { configured: told(10.0), is_ceiling: false, ..requests(20.0, burst) };
        cases.push(Case::new(format!("starting point x0.5, burst {burst} s"), scenario));
    }
    cases
}

fn other_limits() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [WindowKind::Sliding, WindowKind::FromFirstUse, WindowKind::Aligned] {
        for retry_after in [RetryAfter::WholeSeconds, RetryAfter::Absent] {
            let scenario = Scenario { retry_after, ..windows(20.0, kind) };
            let name = format!("window {kind:?}, Retry-After {retry_after:?}");
            cases.push(Case::new(name, scenario).least(0.85));
        }
    }
    for burst in [1.0, 60.0] {
        for is_named in [true, false] {
            let scenario = Scenario { is_named, error: 0.3, ..tokens(20.0, burst) };
            cases.push(Case::new(format!("tokens, burst {burst} s, named {is_named}"), scenario));
        }
    }
    for latency in [(0.05, 0.4), (2.0, 10.0)] {
        for is_named in [true, false] {
            let scenario = Scenario { is_named, concurrency: Some(8), latency, ..Scenario::new() };
            let name = format!("concurrency 8, latency {latency:?}, named {is_named}");
            cases.push(Case::new(name, scenario));
        }
    }
    cases
}

fn changes() -> Vec<Case> {
    let mut cases = Vec::new();
    for burst in [1.0, 10.0] {
        let rises = loaded(5.0, burst, 0.0, Load { seconds: 150.0, factors: [1.0, 4.0] });
        let falls = loaded(20.0, burst, 0.0, Load { seconds: 150.0, factors: [1.0, 0.25] });
        let others = loaded(20.0, burst, 0.0, Load { seconds: 20.0, factors: [1.0, 0.25] });
        let with = |limit| Scenario { limits: vec![(REQUESTS, limit)], ..Scenario::new() };
        cases.push(Case::new(format!("limit x4 in the middle, burst {burst} s"), with(rises)));
        cases.push(Case::new(format!("limit x0.25 in the middle, burst {burst} s"), with(falls)));
        let others = Scenario { configured: told(20.0), ..with(others) };
        cases.push(Case::new(format!("others take 3/4 every other 20 s, burst {burst} s"), others));
    }
    for processes in [2, 3] {
        let scenario = Scenario { processes, ..requests(20.0, 10.0) };
        cases.push(Case::new(format!("{processes} processes"), scenario));
    }
    let arrivals = (0..15).map(|i| (f64::from(i) * 20.0, 320)).collect();
    let bursts = Scenario { arrivals, demand: 4800.0, ..requests(20.0, 10.0) };
    cases.push(Case::new("bursts of work", bursts));
    let storm = Scenario { configured: told(20.0), storm: (100.0, 130.0), ..requests(20.0, 60.0) };
    cases.push(Case::new("529 for 30 s", storm));
    cases
}

/// 900 requests each; the limits are 20 a second.
fn short() -> Vec<Case> {
    let short = |scenario: Scenario| Scenario {
        arrivals: vec![(0.0, 900)],
        seconds: 600.0,
        workers: 50,
        ..scenario
    };
    let absent = |scenario| Scenario { retry_after: RetryAfter::Absent, ..scenario };
    let configured = |rate, scenario| Scenario { configured: told(rate), ..scenario };
    let half = Load { factors: [0.5; 2], ..Load::NONE };
    let half =
        Scenario { limits: vec![(REQUESTS, loaded(20.0, 1.0, 0.0, half))], ..Scenario::new() };
    [
        ("1200 RPM enforced as 20/s", configured(20.0, requests(20.0, 0.05))),
        ("the same, burst 1 s", configured(20.0, requests(20.0, 1.0))),
        ("the same, no Retry-After", absent(configured(20.0, requests(20.0, 1.0)))),
        ("burst 10 s, told twice", configured(40.0, requests(20.0, 10.0))),
        ("the same, no Retry-After", absent(configured(40.0, requests(20.0, 10.0)))),
        ("told nothing, burst 1 s", requests(20.0, 1.0)),
        ("told nothing, burst 10 s", requests(20.0, 10.0)),
        ("others use half", configured(20.0, half)),
    ]
    .into_iter()
    .map(|(name, scenario)| Case::new(format!("900 requests: {name}"), short(scenario)))
    .collect()
}

pub(super) fn all() -> Vec<Case> {
    [unknown(), configured(), other_limits(), changes(), short()].into_iter().flatten().collect()
}

/// Cases that miss their targets, and the reason.
const MISSED: [&str; 6] = [
    // The slow start ends at its first burst, after 100 requests: the rate is found from 28/s in 20 s of 90.
    "told nothing, 500/s, burst 0.2 s",
    // The start reaches four times the rate before the burst is used, and two seconds of it are under way then.
    "told nothing, 20/s, 429s take 2 s",
    // The rate is found again from a quarter, in the seconds after each change.
    "limit x4 in the middle, burst 10 s",
    "others take 3/4 every other 20 s, burst 1 s",
    "others take 3/4 every other 20 s, burst 10 s",
    // Retry-After of a second costs 20 requests each time, since the bucket holds one.
    "900 requests: 1200 RPM enforced as 20/s",
];

#[test]
fn fixed_cases_meet_targets() {
    let mut failures = Vec::new();
    for case in all() {
        let outcome = run(&case.scenario);
        let is_expected = !MISSED.contains(&&*case.name);
        if outcome.accepted == 0 || is_expected && !case.is_met(&outcome) {
            failures.push(format!("{}: {outcome:?}", case.name));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn short_jobs_are_answered_in_full() {
    for case in short() {
        let outcome = run(&case.scenario);
        assert_eq!((outcome.accepted, outcome.unanswered), (900, 0), "{}", case.name);
        assert!(outcome.refusals <= 30, "{}: {outcome:?}", case.name);
    }
}

/// A client that is slow to read its answers counts more requests in flight than the provider. It tests its cap
/// with more of them, but never sends all that wait at once.
#[test]
fn cap_of_busy_client_is_lowered_and_not_dropped() {
    for (seed, reads_every) in (1..=20).flat_map(|seed| [0.1, 0.3, 0.5].map(|every| (seed, every)))
    {
        let scenario = Scenario {
            concurrency: Some(8),
            latency: (0.05, 0.8),
            refusal: 0.001,
            reads_every,
            seed,
            ..Scenario::new()
        };
        let outcome = run(&scenario);
        let allowed = 30.0 + 0.1 * outcome.accepted as f64;
        assert!(outcome.refusals as f64 <= allowed, "{seed} {reads_every}: {outcome:?}");
    }
}

/// Two programs without a bus use the account in full, and nine times of ten each has a third of it at least.
#[test]
fn two_processes_share_one_account() {
    let seeds = full_or(200, 60);
    let mut unequal = Vec::new();
    for seed in 1..=seeds {
        let scenario = Scenario { processes: 2, seed, ..requests(20.0, 10.0) };
        let outcome = run(&scenario);
        assert!(outcome.used >= 0.9, "{outcome:?}");
        if outcome.shares.iter().any(|share| *share < 1.0 / 3.0) {
            unequal.push((seed, outcome.shares));
        }
    }
    assert!(unequal.len() * 10 <= seeds as usize, "{} of {seeds}: {unequal:?}", unequal.len());
}
