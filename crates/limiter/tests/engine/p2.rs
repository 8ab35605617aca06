//! P2: a wait is exact. After `At(t)` a cost is granted at `t` without other requests, and at no
//! earlier time; `Unknown` is returned only while a held amount prevents the grant; `Never` is returned
//! exactly for costs above the limit, except with debt.

use std::time::Duration;

use paceline_limiter::engine::{Wait, check, reserve};
use paceline_limiter::quota::{Cost, Margin, SettleAt};
use proptest::prelude::*;

use super::at;
use super::schedule::{Act, Event, Spec, config, events, specs, start};
use super::world::{EndedRequest, World};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p2_wait_is_exact(
        specs in specs(), start in start(), events in events(20), questions in events(3),
        margin in margin(),
    ) {
        let mut world = World::new(specs, margin, start);
        world.run(&events);
        for question in questions {
            world.advance(question);
            let cost = cost(&world, question);
            match wait(&world, &cost) {
                None => prop_assert!(fits(&world, &cost, world.now)),
                Some(Wait::Never) => prop_assert!(exceeds_capacity(&world, &cost)),
                Some(Wait::At(time)) => assert_wait_is_exact(&world, &cost, time.as_nanos(), question)?,
                Some(Wait::Unknown) => assert_blocked_by_held_amount(&mut world, &cost, question)?,
            }
            prop_assert_eq!(wait(&world, &cost) == Some(Wait::Never), exceeds_capacity(&world, &cost));
        }
    }

    /// If all rules settle at the end, a cost is granted exactly if it fits together with the held
    /// amounts and the usage of the reference; `Unknown` or `Never` is returned exactly if it does
    /// not fit together with the held amounts alone.
    #[test]
    fn p2_hold_counts_exactly_the_reservation(
        specs in specs(), start in start(), events in events(20),
    ) {
        let at_end = |s: Spec| Spec { settle: SettleAt::End, ..s };
        let mut world = World::new(specs.into_iter().map(at_end).collect(), Margin::NONE, start);
        for event in events {
            world.run(&[event]);
            let cost = world.cost(event);
            let refused = wait(&world, &cost);
            prop_assert_eq!(refused.is_none(), fits_on_top(&world, &cost, false), "{:?}", refused);
            let beyond = matches!(refused, Some(Wait::Unknown | Wait::Never));
            prop_assert_eq!(beyond, !fits_on_top(&world, &cost, true), "{:?}", refused);
        }
    }
}

/// Returns true if the cost fits together with the held amounts, and with the usage unless `empty`.
fn fits_on_top(world: &World, cost: &Cost, empty: bool) -> bool {
    world.specs.iter().all(|spec| {
        let amount = cost.amount(&spec.dimension);
        let held: u64 = world.open.iter().map(|o| o.reserved.amount(&spec.dimension)).sum();
        if amount == 0 || spec.is_concurrency() {
            return amount == 0 || held < spec.amount;
        }
        let mut reference = spec.reference_at_settle();
        for (at, amount) in world.charges_of(spec, EndedRequest::at_settle) {
            reference.take(if empty { 0 } else { amount }, at);
        }
        reference.fits(held + spec.needed(amount), world.now)
    })
}

fn assert_wait_is_exact(
    world: &World,
    cost: &Cost,
    at: u64,
    probe: Event,
) -> Result<(), TestCaseError> {
    prop_assert!(at > world.now);
    prop_assert!(fits(world, cost, at), "refused at {}, the wait returned at {}", at, world.now);
    prop_assert!(!fits(world, cost, at - 1), "granted before {}", at);
    let part = u128::from(at - world.now) * u128::from(probe.share) / 256;
    let sooner = world.now + u64::try_from(part).unwrap();
    prop_assert!(!fits(world, cost, sooner), "granted at {}, before {}", sooner, at);
    Ok(())
}

fn assert_blocked_by_held_amount(
    world: &mut World,
    cost: &Cost,
    question: Event,
) -> Result<(), TestCaseError> {
    let mut held = world.rules.iter().zip(&world.buckets);
    prop_assert!(held.any(|(rule, bucket)| bucket.level(rule, at(world.now)).held > 0));
    let act = if question.delay < 128 { Act::Release } else { Act::Settle };
    world.finish_all(act);
    match wait(world, cost) {
        Some(Wait::At(time)) => assert_wait_is_exact(world, cost, time.as_nanos(), question),
        None => Ok(()),
        Some(other) => Err(TestCaseError::fail(format!("{other:?} without a held amount"))),
    }
}

fn wait(world: &World, cost: &Cost) -> Option<Wait> {
    check(&world.rules, &world.buckets, cost, at(world.now)).err().map(|s| s.wait)
}

fn fits(world: &World, cost: &Cost, now: u64) -> bool {
    reserve(&world.rules, &mut world.buckets.clone(), cost, at(now)).is_ok()
}

fn exceeds_capacity(world: &World, cost: &Cost) -> bool {
    let mut limits = world.specs.iter().filter(|s| !s.is_concurrency() && !s.debt);
    limits.any(|s| cost.amount(&s.dimension) > s.capacity())
}

/// Returns a cost that sometimes exceeds every limit.
fn cost(world: &World, question: Event) -> Cost {
    let cost = world.cost(question);
    match question.delay % 32 {
        0 => cost.requests(1 << 32),
        1 => cost.tokens(5_001),
        _ => cost,
    }
}

fn margin() -> impl Strategy<Value = Margin> {
    prop_oneof![
        Just(Margin::NONE),
        Just(Margin::default()),
        (0..100_u8, 0..2_000_000_000_u64).prop_map(|(percent, lag)| Margin::new(
            percent,
            Duration::from_nanos(lag)
        )
        .unwrap()),
    ]
}
