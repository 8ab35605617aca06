//! Refusals that don't depend on the rate, on top of limits.

use super::provider::bucket;
use super::scenario::{Chance, Outcome, Scenario};
use super::simulation::run;
use crate::quota::Dimension;
use paceline_testing::full::full_or;

/// What the provider limits to, and what its clients were told.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// No limit, told 20 a second.
    None,
    /// 20 a second, told that.
    Right,
    /// 20 a second, told twice.
    Twice,
    /// 20 a second, told nothing.
    Untold,
    /// The same with a bucket of 10 s.
    UntoldLong,
}

impl Limit {
    fn scenario(self, chance: Chance, seconds: f64) -> Scenario {
        let limit = match self {
            Self::None => bucket(1e9, 1.0, 0.0),
            Self::Right => bucket(20.0, 60.0, 0.0),
            Self::Twice | Self::Untold => bucket(20.0, 1.0, 0.0),
            Self::UntoldLong => bucket(20.0, 10.0, 0.0),
        };
        let told = match self {
            Self::None | Self::Right => vec![(Dimension::Requests, 20.0)],
            Self::Twice => vec![(Dimension::Requests, 40.0)],
            Self::Untold | Self::UntoldLong => Vec::new(),
        };
        let demand = if self == Self::None { 20.0 * (seconds + 60.0) } else { f64::INFINITY };
        Scenario {
            limits: vec![(Dimension::Requests, limit)],
            configured: told,
            demand,
            seconds,
            chance,
            ..Scenario::new()
        }
    }

    /// The least part of what is possible.
    fn least(self, share: f64) -> f64 {
        match (self, share < 0.3) {
            (Self::Untold | Self::UntoldLong, true) => 0.75,
            (Self::Untold | Self::UntoldLong, false) => 0.5,
            (_, true) => 0.85,
            (_, false) => 0.6,
        }
    }
}

static LIMITS: [Limit; 4] = [Limit::None, Limit::Right, Limit::Twice, Limit::UntoldLong];
const SHARES: [f64; 5] = [0.02, 0.05, 0.1, 0.2, 0.3];

/// Returns the used part of what is possible, as the mean of some runs. Periods with and without chance alternate.
fn used(limit: Limit, chance: Chance, seconds: f64, seeds: u64) -> f64 {
    let part = if chance.seconds.is_finite() { 0.5 } else { 1.0 };
    let run = |seed| run(&Scenario { seed, ..limit.scenario(chance, seconds) }).used;
    (1..=seeds).map(run).sum::<f64>() / seeds as f64 / (1.0 - chance.share * part)
}

fn assert_used(limits: &[Limit], shares: &[f64], period: f64, seconds: f64, seeds: u64) {
    let mut missed = Vec::new();
    for retry_after in [None, Some(1)] {
        for (limit, share) in
            limits.iter().flat_map(|limit| shares.iter().map(move |s| (*limit, *s)))
        {
            let chance = Chance { share, seconds: period, retry_after, ..Chance::NONE };
            let used = used(limit, chance, seconds, seeds);
            if used < limit.least(share) {
                missed.push(format!("{limit:?} {share} Retry-After {retry_after:?}: {used:.2}"));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Without a limit, all figures are those of a limit that was told right.
fn limits() -> &'static [Limit] {
    full_or(&LIMITS[..], &LIMITS[1..])
}

#[test]
fn limit_beside_constant_chance_is_used() {
    assert_used(limits(), &SHARES, f64::INFINITY, 300.0, full_or(12, 6));
}

#[test]
fn limit_beside_bursts_of_chance_is_used() {
    assert_used(limits(), &SHARES, 20.0, 600.0, full_or(12, 6));
}

#[test]
fn limit_beside_hours_of_chance_is_used() {
    let limits = full_or(&LIMITS[..], &[Limit::Right]);
    assert_used(limits, full_or(&SHARES, &[0.02, 0.3]), 3_600.0, 7_200.0, 2);
}

/// Refusals that name the limit of requests are less likely to be chance, so that it takes longer to be shown.
#[test]
fn limit_beside_named_chance_is_used_in_part() {
    for (retry_after, least) in [(None, 0.65), (Some(1), 0.5)] {
        let shares = full_or(&SHARES[..], &[0.05, 0.3]);
        for (limit, share) in
            LIMITS[1..].iter().flat_map(|limit| shares.iter().map(move |s| (limit, *s)))
        {
            let chance = Chance { share, retry_after, is_named: true, ..Chance::NONE };
            let used = used(*limit, chance, 300.0, full_or(12, 4));
            assert!(used >= least, "{limit:?} {share} Retry-After {retry_after:?}: {used:.2}");
        }
    }
}

/// Four programs that share an account, whose refusals name no limit, may take each other's use for chance. The one
/// with the largest share doesn't send ever more.
#[test]
fn programs_that_share_an_account_dont_outbid_each_other() {
    for seed in 1..=full_or(40, 8) {
        let limits = vec![(Dimension::Requests, bucket(20.0, 10.0, 0.0))];
        let scenario = Scenario { limits, processes: 4, is_named: false, seed, ..Scenario::new() };
        let outcome = run(&scenario);
        assert!(outcome.refusals <= outcome.accepted, "seed {seed}: {outcome:?}");
    }
}

/// The other account of two behind one key is used, though every other request meets the exhausted one.
#[test]
fn account_beside_exhausted_one_is_used() {
    for limit in [Limit::Twice, Limit::Untold, Limit::UntoldLong] {
        for (retry_after, seed) in
            [None, Some(1)].into_iter().flat_map(|r| (1..=4).map(move |s| (r, s)))
        {
            let chance = Chance { retry_after, ..Chance::NONE };
            let scenario = limit.scenario(chance, 300.0);
            let Outcome { used, .. } = run(&Scenario { seed, is_half_exhausted: true, ..scenario });
            assert!(used >= 0.8, "{limit:?} {retry_after:?} seed {seed}: {used}");
        }
    }
}

/// A limit that falls isn't chance: fewer than 3 % of requests are refused.
#[test]
fn limit_that_falls_is_no_chance() {
    use super::provider::{Load, loaded};
    for (seed, factor) in (1..=4).flat_map(|seed| [0.7, 0.5, 0.25].map(|factor| (seed, factor))) {
        let limit = loaded(20.0, 10.0, 0.0, Load { seconds: 150.0, factors: [1.0, factor] });
        let limits = vec![(Dimension::Requests, limit)];
        let outcome = run(&Scenario { limits, is_named: false, seed, ..Scenario::new() });
        let allowed = 0.03 * outcome.accepted as f64;
        assert!(outcome.refusals as f64 <= allowed, "x{factor} seed {seed}: {outcome:?}");
    }
}

/// Returns the mean seconds in which a job of 300 requests is done that was told the right limit, 6 without refusals.
fn job(share: f64, retry_after: Option<u64>, is_named: bool) -> f64 {
    let chance = Chance { share, retry_after, is_named, ..Chance::NONE };
    let job = Scenario {
        is_named,
        workers: 50,
        arrivals: vec![(0.0, 300)],
        ..Limit::Right.scenario(chance, 1_000.0)
    };
    let end = |seed| run(&Scenario { seed, ..job.clone() }).end;
    (1..=16).map(end).sum::<f64>() / 16.0
}

#[test]
fn short_job_beside_chance_is_done_soon() {
    for (share, named_after) in [(0.02, 40.0), (0.05, 50.0), (0.1, 65.0)] {
        let ends = [(None, false), (None, true), (Some(1), false), (Some(1), true)]
            .map(|(retry_after, is_named)| job(share, retry_after, is_named));
        let most = [25.0, 30.0, 40.0, named_after];
        let is_soon = ends.iter().zip(most).all(|(end, most)| *end <= most);
        assert!(is_soon, "{share}: {ends:.1?}, at most {most:?}");
    }
}

/// A trial of a limit costs two refusals, and becomes rare.
#[test]
fn trials_of_limit_cost_few_refusals() {
    for (rate, is_named) in
        [2.0, 20.0, 100.0].into_iter().flat_map(|r| [true, false].map(|n| (r, n)))
    {
        let limits = vec![(Dimension::Requests, bucket(rate, 1.0, 0.0))];
        let outcome = run(&Scenario { limits, is_named, ..Scenario::new() });
        let trials = outcome.refusals.saturating_sub(2 * outcome.events) / 2;
        assert!(outcome.used >= 0.95 && trials <= 6, "{rate} {is_named}: {outcome:?}");
    }
}
