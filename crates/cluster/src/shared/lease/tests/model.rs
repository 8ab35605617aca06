//! Simulates lease holders with lost and late messages, crashes and diverging clocks, and checks
//! their admissions against simple reference counters.

use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, SettleAt, Window};
use proptest::prelude::*;

use super::reference::Reference;
use super::server::{Reply, Server};
use super::world::{Scenario, Use, World};
use super::{LEASE, MILLI, SECOND, at};
use crate::shared::lease::{KeyLease, LeaseLimits};
use crate::shared::script::Id;
use paceline_testing::full::full_or;

pub(super) fn cost(requests: u64, tokens: u64) -> Cost {
    Cost::new().requests(requests).tokens(tokens)
}

fn quota() -> Quota {
    let limit = |dimension, amount| Limit::new(dimension, amount, Window::new(WINDOW).unwrap());
    let requests = limit(Dimension::Requests, 40).unwrap();
    Quota::new().limit(requests).limit(limit(Dimension::Tokens, 100).unwrap())
}

fn rules(quota: &Quota, algorithm: Algorithm) -> Arc<[Rule]> {
    let settle = |limit: &Limit| {
        if *limit.dimension() == Dimension::Requests { SettleAt::Send } else { SettleAt::End }
    };
    let rule = |limit: &Limit| Rule::new(limit, algorithm, Margin::NONE, settle(limit));
    quota.limits().iter().map(rule).collect()
}

/// Creates a reference counter for an amount per window.
type NewReference = fn(u64, u64) -> Reference;

fn algorithms() -> [(Algorithm, NewReference); 3] {
    [
        (Algorithm::TokenBucket, Reference::Token),
        (Algorithm::SlidingWindow, Reference::Sliding),
        (Algorithm::ClockWindow, Reference::Grid),
    ]
}

/// Runs a simulation to its end, and checks that no amount stays held and that usage never exceeded
/// the limits.
fn simulate(scenario: Scenario, algorithm: usize, seed: u64) -> World {
    let (algorithm, reference) = algorithms()[algorithm];
    let rules = rules(&quota(), algorithm);
    let mut world = World::new(&rules, scenario, seed);
    world.run();
    world.uses.sort_unstable();
    let window = rules[0].limit().window().as_nanos();
    let amounts = |amount: fn(&Use) -> u64| world.uses.iter().map(move |u| (u.at, amount(u)));
    reference(40, window).assert_within_limit(amounts(|u| u.requests));
    reference(100, window).assert_within_limit(amounts(|u| u.tokens));
    assert_eq!(world.server.held_by_all(), 0, "no lease is left, but an amount is still held");
    assert!(world.holders.iter().all(|holder| holder.lease.is_empty()));
    world
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let faults = (0..200_u64, 0..100_u64, any::<bool>(), 0..20_u64);
    (faults, 1..200_u64, 1..6_usize).prop_map(|((lost, late, cut, crashes), pause, holders)| {
        Scenario { lost, late, cut, crashes, pause: pause * MILLI, holders, seconds: 20 }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(full_or(500, 50)))]

    #[test]
    fn usage_never_exceeds_the_limits_at_admission(
        scenario in scenarios(), algorithm in 0..3_usize, seed in any::<u64>(),
    ) {
        simulate(scenario, algorithm, seed);
    }

    #[test]
    fn charges_at_any_time_before_the_end_stay_within_limits(
        scenario in scenarios(), algorithm in 0..3_usize, seed in any::<u64>(),
    ) {
        simulate(Scenario { lost: 0, late: 0, cut: false, crashes: 0, ..scenario }, algorithm, seed);
    }

    #[test]
    fn usage_is_charged_once_despite_lost_messages(
        scenario in scenarios(), algorithm in 0..3_usize, seed in any::<u64>(),
    ) {
        let world = simulate(Scenario { late: 0, cut: false, crashes: 0, ..scenario }, algorithm, seed);
        let used: u64 = world.uses.iter().map(|u| u.requests).sum();
        prop_assert!(world.server.charged >= used, "{} of {used}", world.server.charged);
        prop_assert!(world.server.charged <= used + world.server.expired);
    }
}

/// Returns the used fraction of a limit of 6,000 per minute over `seconds`, in thousandths.
fn share(algorithm: Algorithm, holders: usize, pause: u64, seconds: u64) -> u64 {
    let rules = rules(&Quota::new().rpm(6_000), algorithm);
    let scenario = Scenario { holders, pause, seconds, ..Scenario::WITHOUT_FAULTS };
    let mut world = World::new(&rules, scenario, 7);
    world.run();
    let used: u64 = world.uses.iter().map(|u| u.requests).sum();
    let limit = match algorithm {
        Algorithm::TokenBucket => 6_000 + seconds * 100,
        _ => seconds * 100,
    };
    used * 1_000 / limit
}

#[test]
fn saturated_holders_exhaust_a_token_bucket() {
    for (holders, pause) in [(1, MILLI), (4, 5 * MILLI), (16, 10 * MILLI), (16, 100 * MILLI)] {
        let share = share(Algorithm::TokenBucket, holders, pause, full_or(300, 100));
        assert!((970..=1_000).contains(&share), "{share} of 1000 by {holders}");
    }
}

#[test]
fn window_counts_usage_at_most_one_renewal_longer() {
    for holders in [1, 4, 16] {
        let share = share(Algorithm::SlidingWindow, holders, 5 * MILLI, 300);
        assert!((970..=1_000).contains(&share), "{share} of 1000 by {holders}");
    }
}

#[test]
fn amount_held_at_a_crash_returns_as_the_bucket_refills() {
    let rules = rules(&Quota::new().rpm(600), Algorithm::TokenBucket);
    let (mut server, mut now) = (Server::new(&rules), 1_000 * SECOND);
    let mut crashed =
        KeyLease::new(Arc::clone(&rules), Id([1; 16]), 1, Duration::from_nanos(LEASE));
    let call = crashed.prepare_call(
        Some(&cost(100, 0)),
        &LeaseLimits { available: None, members: 2 },
        at(now),
    );
    let Reply::Leased(granted) = server.request_lease(&call, now) else {
        panic!("the lease is refused")
    };
    crashed.on_granted(&granted);
    assert!(crashed.try_take(&rules, &cost(granted[0], 0), at(now)).is_some());
    let available = |server: &mut Server, now| {
        server.expire(now);
        server.buckets[0].level(&rules[0], at(now)).available
    };
    assert_eq!(
        available(&mut server, now),
        600 - granted[0],
        "held amounts are not available to other holders"
    );
    now += LEASE;
    assert_eq!((available(&mut server, now), server.held_by_all()), (600 - granted[0], 0));
    now += granted[0] * SECOND / 10;
    assert_eq!(available(&mut server, now), 600);
}

const WINDOW: Duration = Duration::from_secs(4);
