//! Limits that never reset.

use paceline_limiter::engine::{Bucket, Rule, Wait, charge, check, release, reserve, settle};
use paceline_limiter::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, SettleAt};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{S, at, fresh, rules};

fn total(amount: u64, settle: SettleAt) -> (Vec<Rule>, Vec<Bucket>) {
    let quota = Quota::new().limit(Limit::total(Dimension::Tokens, amount));
    let rules = rules(&quota, Algorithm::TokenBucket, Margin::default(), settle);
    let buckets = fresh(&rules);
    (rules, buckets)
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

#[test]
fn total_has_no_algorithm_and_is_open_at_every_time() {
    for algorithm in Algorithm::ALL {
        let limit = Limit::total(Dimension::Tokens, 5).unwrap();
        assert_eq!(limit.clone().with_algorithm(algorithm), limit);
        assert_eq!(limit.clone().with_burst(2), limit);
    }
    let (rules, buckets) = total(5, SettleAt::Send);
    for now in [0, 1, S / 4, u64::MAX - S, u64::MAX] {
        assert_eq!(check(&rules, &buckets, &tokens(5), at(now)), Ok(()), "at {now}");
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Reserve(u64),
    /// Ends one of the reservations, with an actual amount or as unsent.
    End(usize, Option<u64>),
    Charge(u64),
    /// Moves the time, also back.
    At(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let amount = || prop_oneof![4 => 0..40_u64, 1 => any::<u64>()];
    prop_oneof![
        4 => amount().prop_map(Step::Reserve),
        3 => (any::<usize>(), prop::option::of(amount())).prop_map(|(n, by)| Step::End(n, by)),
        1 => (0..20_u64).prop_map(Step::Charge),
        2 => any::<u64>().prop_map(Step::At),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Compares a total with a sum.
    #[test]
    fn total_admits_what_a_sum_leaves(
        limit in 1..200_u64,
        holds in any::<bool>(),
        steps in vec(step(), 1..40),
    ) {
        let settle_at = if holds { SettleAt::End } else { SettleAt::Send };
        let (rules, mut buckets) = total(limit, settle_at);
        let (mut now, mut used, mut held) = (at(0), 0_u64, 0_u64);
        let mut open = Vec::new();
        for step in steps {
            match step {
                Step::At(time) => now = at(time),
                Step::Charge(amount) => {
                    charge(&rules, &mut buckets, &tokens(amount), now);
                    used = used.saturating_add(amount);
                }
                Step::Reserve(amount) => {
                    let expected = match () {
                        () if amount == 0 => Ok(()),
                        () if used.saturating_add(amount) > limit => Err(Wait::Never),
                        () if used + held + amount > limit => Err(Wait::Unknown),
                        () => Ok(()),
                    };
                    let cost = tokens(amount);
                    let reserved = reserve(&rules, &mut buckets, &cost, now);
                    prop_assert_eq!(reserved.map_err(|short| short.wait), expected);
                    if expected.is_ok() {
                        open.push((now, amount));
                        *(if holds { &mut held } else { &mut used }) += amount;
                    }
                }
                Step::End(_, _) if open.is_empty() => {}
                Step::End(index, actual) => {
                    let (sent, amount) = open.swap_remove(index % open.len());
                    let cost = tokens(amount);
                    *(if holds { &mut held } else { &mut used }) -= amount;
                    match actual {
                        Some(actual) => settle(&rules, &mut buckets, sent, &cost, &tokens(actual), now),
                        None => release(&rules, &mut buckets, sent, &cost, now),
                    }
                    used = used.saturating_add(actual.unwrap_or(0));
                }
            }
            let level = buckets[0].level(&rules[0], now);
            prop_assert_eq!((level.used, level.held), (used, held));
        }
    }
}
