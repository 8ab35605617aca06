//! P4: all or none. A refusal leaves every bucket unchanged; a grant is charged to every rule that
//! counts the cost and to no other.

use paceline_limiter::engine::{Shortfall, check, reserve};
use paceline_limiter::quota::{Cost, Margin};
use proptest::prelude::*;

use super::at;
use super::schedule::{Act, config, events, specs, start};
use super::world::World;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p4_request_charges_all_rules_or_none(
        specs in specs(), start in start(), events in events(20), delayed: bool,
    ) {
        let margin = if delayed { Margin::default() } else { Margin::NONE };
        let mut world = World::new(specs, margin, start);
        for event in events {
            if event.act != Act::Reserve {
                world.run(&[event]);
                continue;
            }
            world.advance(event);
            let (before, cost) = (world.buckets.clone(), world.cost(event));
            let answer = world.reserve(&cost, event);
            match answer {
                Ok(()) => {
                    let after = std::mem::replace(&mut world.buckets, before);
                    assert_charged_separately(&mut world, &cost)?;
                    prop_assert_eq!(&world.buckets, &after);
                }
                Err(shortfall) => {
                    prop_assert_eq!(&world.buckets, &before);
                    assert_named_rule_binds(&world, &cost, shortfall)?;
                }
            }
        }
    }
}

fn assert_charged_separately(world: &mut World, cost: &Cost) -> Result<(), TestCaseError> {
    for (index, spec) in world.specs.iter().enumerate() {
        let single_rule = index..=index;
        let before = world.buckets[index].clone();
        let buckets = &mut world.buckets[single_rule.clone()];
        prop_assert!(reserve(&world.rules[single_rule], buckets, cost, at(world.now)).is_ok());
        let counts = cost.amount(&spec.dimension) > 0;
        prop_assert_eq!(before != world.buckets[index], counts, "{:?}", spec);
    }
    Ok(())
}

/// Asserts that the wait is at least that of every single rule, and that the named rule alone refuses
/// the cost, now or during the wait.
fn assert_named_rule_binds(
    world: &World,
    cost: &Cost,
    shortfall: Shortfall,
) -> Result<(), TestCaseError> {
    let alone = |index: usize| {
        let single_rule = index..=index;
        check(&world.rules[single_rule.clone()], &world.buckets[single_rule], cost, at(world.now))
            .err()
    };
    let waits: Vec<_> = (0..world.rules.len()).filter_map(alone).map(|s| s.wait).collect();
    prop_assert!(waits.iter().all(|&wait| wait <= shortfall.wait), "{:?} {:?}", waits, shortfall);
    let named = alone(shortfall.rule).map(|s| s.wait);
    let closes_later = world.specs[shortfall.rule].closes() && !waits.is_empty();
    prop_assert!(named == Some(shortfall.wait) || closes_later, "{:?} {:?}", named, shortfall);
    Ok(())
}
