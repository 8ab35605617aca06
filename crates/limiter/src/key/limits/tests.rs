//! The limits of one key, without a limiter.

use crate::timestamp::Timestamp;
use std::time::Duration;

use paceline_testing::full::full_or;
use proptest::prelude::*;

use super::*;
use crate::engine::{Level, Shortfall, Wait};
use crate::plan::{ChargedAtSend, Provider};
use crate::quota::{Algorithm, Limit, Margin, Quota, Window};

const S: Duration = Duration::from_secs(1);
const START: Timestamp = Timestamp::from_unix_secs(86_400 * 100);

/// Returns a plan whose tokens are held until the end, or charged when they are sent if a provider
/// is given.
fn plan(quota: &Quota, provider: Option<&Provider>, version: u32) -> Plan {
    Plan::new(quota, provider, Margin::NONE, 0, version)
}

fn limits(quota: &Quota) -> Limits {
    Limits::new(Arc::new(plan(quota, None, 1)))
}

fn sliding(quota: Quota) -> Quota {
    quota.with_algorithm(Algorithm::SlidingWindow)
}

fn levels(limits: &Limits, now: Timestamp) -> Vec<Level> {
    limits.iter().map(|(rule, bucket)| bucket.level(rule, now)).collect()
}

/// Returns the amounts used and held, by rule.
fn used_and_held(limits: &Limits, now: Timestamp) -> Vec<(u64, u64)> {
    levels(limits, now).iter().map(|level| (level.used, level.held)).collect()
}

fn granted(version: u32, at: Timestamp, cost: &Cost) -> Granted<'_> {
    Granted { version, at, cost }
}

fn tokens(n: u64) -> Cost {
    Cost::new().tokens(n)
}

/// Limits in some state, after reservations and charges.
#[derive(Debug, Clone)]
struct Used {
    algorithm: Algorithm,
    /// Of the token limit; 0 for its amount.
    burst: u64,
    window: u64,
    /// The limits of requests and of tokens.
    amounts: (u64, u64),
    has_debt: bool,
    is_held: bool,
    has_margin: bool,
    /// Milliseconds that pass, an amount, and whether the amount is charged instead of reserved.
    steps: Vec<(u64, u64, bool)>,
}

impl Used {
    fn plan(&self) -> Arc<Plan> {
        let provider = (!self.is_held).then(ChargedAtSend::provider);
        let margin = if self.has_margin { Margin::default() } else { Margin::NONE };
        let window = Window::new(Duration::from_secs(self.window)).unwrap();
        let (requests, tokens) = self.amounts;
        let limit = Limit::new(Dimension::Tokens, tokens, window).unwrap();
        let limit = if self.burst > 0 { limit.with_burst(self.burst) } else { limit };
        let limit = if self.has_debt { limit.with_debt() } else { limit };
        let quota = Quota::new().rpm(requests).limit(limit).concurrency(12);
        let quota = quota.with_algorithm(self.algorithm);
        Arc::new(Plan::new(&quota, provider.as_ref(), margin, 0, 1))
    }

    fn build(&self) -> (Limits, Timestamp) {
        let (mut limits, mut now) = (Limits::new(self.plan()), START);
        for &(after, amount, is_charge) in &self.steps {
            now += Duration::from_millis(after);
            match is_charge {
                true => limits.charge(&cost(amount), now),
                false => limits.commit(&cost(amount), now),
            }
        }
        (limits, now)
    }
}

fn cost(amount: u64) -> Cost {
    Cost::new().requests(1 + amount / 100).tokens(amount)
}

fn used() -> impl Strategy<Value = Used> {
    let algorithms = vec![
        (Algorithm::TokenBucket, 0),
        (Algorithm::TokenBucket, 50),
        (Algorithm::SlidingWindow, 0),
        (Algorithm::FixedWindow, 0),
        (Algorithm::ClockWindow, 0),
    ];
    let algorithm = proptest::sample::select(algorithms);
    let window = proptest::sample::select(vec![1, 10, 60, 3_600_u64]);
    let step = (0..9_000_u64, 0..150_u64, any::<bool>());
    let steps = proptest::collection::vec(step, 0..16);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>());
    (algorithm, window, (1..40_u64, 1..400_u64), switches, steps).prop_map(
        |((algorithm, burst), window, amounts, (has_debt, is_held, has_margin), steps)| Used {
            algorithm,
            burst,
            window,
            amounts,
            has_debt,
            is_held,
            has_margin,
            steps,
        },
    )
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(100_000, 5_000))
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fast_reservation_admits_only_costs_of_the_full_check(
        used in used(),
        after in 0..70_000_u64,
        amount in 0..450_u64,
        custom in 0..8_u64,
    ) {
        let (mut limits, now) = used.build();
        let now = now + Duration::from_millis(after);
        let cost = match custom {
            0 => cost(amount).custom("images", 1),
            1 => Cost::new().input_tokens(1),
            _ => cost(amount),
        };
        let Limits { plan, buckets } = &limits;
        let checked = engine::check(&plan.rules, buckets, &cost, now);
        if let Err(Shortfall { wait: Wait::At(time), .. }) = checked {
            let (mut early, _) = used.build();
            prop_assert!(!early.try_reserve_fast(&cost, time - Duration::from_nanos(1)), "it fits at {}", time);
        }
        let fits = checked.is_ok();
        let (mut reserved, _) = used.build();
        if limits.try_reserve_fast(&cost, now) {
            prop_assert!(fits && custom > 1, "refused by the full check");
            reserved.commit(&cost, now);
        }
        prop_assert_eq!(limits.buckets, reserved.buckets);
    }

    /// A bucket that lacks a fraction of a token counts a whole one as used.
    #[test]
    fn limits_carried_to_other_amounts_keep_used_and_held(
        used in used(),
        after in 0..5_000_u64,
        amounts in (1..40_u64, 1..400_u64),
    ) {
        let (limits, now) = used.build();
        let now = now + Duration::from_millis(after);
        let before = used_and_held(&limits, now);
        let same = limits.carried(Arc::clone(&limits.plan), now);
        prop_assert_eq!(used_and_held(&same, now), &before[..]);
        let carried = limits.carried(Used { amounts, ..used }.plan(), now);
        for ((used, held), before) in used_and_held(&carried, now).into_iter().zip(before) {
            prop_assert_eq!(held, before.1);
            prop_assert!((before.0..=before.0 + 1).contains(&used), "{} after {}", used, before.0);
        }
    }

    #[test]
    fn reservation_released_leaves_no_trace(used in used(), amount in 1..150_u64) {
        let (mut limits, now) = used.build();
        let before = used_and_held(&limits, now);
        let cost = cost(amount);
        limits.commit(&cost, now);
        limits.end(granted(1, now, &cost), None, now);
        prop_assert_eq!(used_and_held(&limits, now), before);
    }

    #[test]
    fn limits_cleared_keep_only_amounts_held(used in used(), amount in 1..150_u64) {
        let (mut limits, now) = used.build();
        let cost = cost(amount);
        limits.commit(&cost, now);
        let held: Vec<_> = used_and_held(&limits, now).into_iter().map(|(_, held)| (0, held)).collect();
        limits.clear(Arc::new(limits.plan.renewed(2)));
        prop_assert_eq!(used_and_held(&limits, now), &held[..]);
        // A request from before the reset returns only the amount that it holds.
        limits.end(granted(1, now, &cost), None, now + S);
        let ended = limits.iter().zip(held).map(|((rule, _), (_, held))| {
            (0, if rule.holds() { held - rule.amount(&cost) } else { held })
        });
        prop_assert_eq!(used_and_held(&limits, now + S), ended.collect::<Vec<_>>());
    }

    #[test]
    fn clock_set_back_keeps_the_levels(
        used in used(),
        after in 0..100_000_u64,
        hours in 0..48_u64,
    ) {
        let (mut limits, now) = used.build();
        let (at, back) = (now + Duration::from_millis(after), Duration::from_secs(hours * 3_600));
        let before = used_and_held(&limits, at);
        let is_fresh = limits.is_fresh(at);
        limits.rebase(back);
        prop_assert_eq!(used_and_held(&limits, at - back), before);
        prop_assert_eq!(limits.is_fresh(at - back), is_fresh);
    }
}

#[test]
fn reservation_ended_charges_the_actual_amount() {
    let mut limits = limits(&sliding(Quota::new().rpm(10).tpm(100).concurrency(3)));
    assert!(limits.is_fresh(START));
    limits.commit(&tokens(40), START);
    assert_eq!(used_and_held(&limits, START), [(1, 0), (0, 40), (0, 1)]);
    assert!(!limits.is_fresh(START));
    limits.end(granted(1, START, &tokens(40)), Some(&tokens(25)), START + S);
    assert_eq!(used_and_held(&limits, START + S), [(1, 0), (25, 0), (0, 0)]);
    assert!(!limits.is_fresh(START + 60 * S) && limits.is_fresh(START + 61 * S));
}

#[test]
fn fast_reservation_of_uncounted_dimension_is_refused() {
    let mut limits = limits(&Quota::new().rpm(10).tpm(100));
    assert!(!limits.try_reserve_fast(&Cost::new().input_tokens(1), START));
    assert!(!limits.try_reserve_fast(&Cost::new().custom("images", 1), START));
    assert!(limits.try_reserve_fast(&Cost::new().custom("images", 0), START));
    assert_eq!(used_and_held(&limits, START), [(1, 0), (0, 0)]);
}

#[test]
fn reservation_of_older_version_ends_only_rules_kept() {
    let quota = sliding(Quota::new().rpm(10).tpm(100));
    let cost = Cost::new().tokens(40).input_tokens(30);
    let mut limits = limits(&quota);
    limits.commit(&cost, START);

    let more = plan(
        &sliding(quota.limit(Limit::new(Dimension::InputTokens, 90, Window::MINUTE).unwrap())),
        None,
        2,
    );
    let more = Arc::new(more.succeed(&limits.plan, 2));
    let mut limits = limits.carried(more, START + S);
    let newer = cost.clone();
    limits.commit(&newer, START + S);
    assert_eq!(used_and_held(&limits, START + S), [(2, 0), (0, 80), (0, 30)]);
    limits.end(granted(1, START, &cost), Some(&cost), START + 2 * S);
    assert_eq!(used_and_held(&limits, START + 2 * S), [(2, 0), (40, 40), (0, 30)]);
    limits.end(granted(2, START + S, &newer), Some(&newer), START + 2 * S);
    assert_eq!(used_and_held(&limits, START + 2 * S), [(2, 0), (80, 0), (30, 0)]);
}

#[test]
fn reservation_from_before_a_change_to_holding_is_ignored() {
    let quota = sliding(Quota::new().rpm(10).tpm(100));
    let mut limits = Limits::new(Arc::new(plan(&quota, Some(&ChargedAtSend::provider()), 1)));
    limits.commit(&tokens(40), START);
    let holding = plan(&quota, None, 2).succeed(&limits.plan, 2);
    let mut limits = limits.carried(Arc::new(holding), START + S);
    assert_eq!(used_and_held(&limits, START + S), [(1, 0), (40, 0)]);
    limits.end(granted(1, START, &tokens(40)), Some(&tokens(99)), START + S);
    assert_eq!(used_and_held(&limits, START + S), [(1, 0), (40, 0)]);
}

#[test]
fn amount_held_is_taken_when_the_rule_stops_holding() {
    let quota = sliding(Quota::new().rpm(10).tpm(100));
    let mut limits = limits(&quota);
    limits.commit(&tokens(40), START);
    let sending = plan(&quota, Some(&ChargedAtSend::provider()), 2).succeed(&limits.plan, 2);
    let limits = limits.carried(Arc::new(sending), START + S);
    assert_eq!(used_and_held(&limits, START + S), [(1, 0), (40, 0)]);
}

#[test]
fn dimension_settled_early_is_charged_once() {
    let quota = sliding(Quota::new().rpm(10).itpm(100).otpm(100));
    let mut limits = limits(&quota);
    let reserved = Cost::new().input_tokens(40).output_tokens(50);
    limits.commit(&reserved, START);
    let charged = Cost::new().input_tokens(30).output_tokens(50);
    let early = granted(1, START + S, &reserved);
    let rules = limits.settle_early(early, &Dimension::InputTokens, &charged, START + S);
    assert_eq!(rules[..], [1]);
    assert_eq!(used_and_held(&limits, START + S), [(1, 0), (30, 0), (0, 50)]);
    // As a permit ends: the dimension is neither reserved nor charged any more.
    let (rest, charged) = (reserved.input_tokens(0), Cost::new().input_tokens(0).output_tokens(20));
    limits.end(granted(1, START, &rest), Some(&charged), START + 2 * S);
    assert_eq!(used_and_held(&limits, START + 2 * S), [(1, 0), (30, 0), (20, 0)]);
}

#[test]
fn dimension_charged_when_sent_is_not_settled_early() {
    let quota = sliding(Quota::new().rpm(10).tpm(100));
    let mut limits = Limits::new(Arc::new(plan(&quota, Some(&ChargedAtSend::provider()), 1)));
    limits.commit(&tokens(40), START);
    let early = |limits: &mut Limits, version| {
        let cost = tokens(40);
        limits.settle_early(granted(version, START, &cost), &Dimension::Tokens, &tokens(9), START)
    };
    assert!(early(&mut limits, 1).is_empty());
    let mut held = self::limits(&quota);
    held.commit(&tokens(40), START);
    assert!(early(&mut held, 0).is_empty(), "the rule is newer than the reservation");
    assert_eq!(used_and_held(&held, START), [(1, 0), (0, 40)]);
    assert_eq!(used_and_held(&limits, START), [(1, 0), (40, 0)]);
}

/// Ten requests refill each second; after the reduction five, after the change six.
#[test]
fn request_sent_before_a_reduction_returns_what_is_missing() {
    let bucket =
        |amount| plan(&Quota::new().rpm(amount).with_algorithm(Algorithm::TokenBucket), None, 1);
    let requests = |n| Cost::new().requests(n);
    let original = bucket(600);
    let mut limits = Limits::new(Arc::new(original.clone()));
    limits.commit(&requests(100), START);
    let now = START + 10 * S;
    limits.commit(&requests(600), now);
    let mut reduced = limits.resized(Arc::new(original.lowered(&[300])), now);
    let mut changed = reduced.carried(Arc::new(bucket(360).succeed(&reduced.plan, 2)), now);
    for limits in [&mut reduced, &mut changed] {
        let before = levels(limits, now)[0].available;
        limits.end(granted(1, START, &requests(100)), None, now);
        assert_eq!(levels(limits, now)[0].available, before, "the hundred had refilled");
    }
}

#[test]
fn limits_resized_keep_the_amount_left_of_a_bucket() {
    let mut limits = limits(&Quota::new().rpm(100).with_algorithm(Algorithm::TokenBucket));
    limits.charge(&Cost::new().requests(30), START);
    let half = Arc::new(limits.plan.lowered(&[50]));
    let smaller = limits.resized(Arc::clone(&half), START);
    assert_eq!(levels(&smaller, START)[0].available, 50);
    limits.charge(&Cost::new().requests(30), START);
    assert_eq!(levels(&limits.resized(half, START), START)[0].available, 40);
}
