//! P3: no amount leaks. After all requests have ended, the held amount is zero and the level equals
//! a plain reference that was charged at the same times.

use paceline_limiter::engine::{Bucket, check, reserve, settle};
use paceline_limiter::quota::{Algorithm, Cost, Dimension, Margin, SettleAt};
use proptest::collection::vec;
use proptest::prelude::*;

use super::at;
use super::reference::{Reference, SlidingWindow};
use super::schedule::{Act, Spec, config, events, size, specs, start, window};
use super::world::{EndedRequest, World};

proptest! {
    #![proptest_config(config())]

    /// The held amount always equals the reservations in flight, and is zero after all have ended.
    #[test]
    fn p3_held_amount_equals_reservations_in_flight(
        specs in specs(), start in start(), events in events(30), release: bool,
    ) {
        let mut world = World::new(specs, Margin::default(), start);
        for event in events {
            world.run(&[event]);
            assert_held(&world)?;
        }
        world.finish_all(if release { Act::Release } else { Act::Settle });
        assert_held(&world)?;
        prop_assert!(world.levels(0).iter().all(|level| level.held == 0));
    }

    /// A rule that settles after send always equals a reference that was charged the actual amount
    /// at settlement; a sliding window charged at send equals a reference charged the actual amount
    /// at send. (So does a fixed window, unless a request that may have started it was released.)
    #[test]
    fn p3_level_equals_reference(
        specs in specs(), start in start(), events in events(30), probe: u8, release: bool,
    ) {
        let mut world = World::new(specs, Margin::NONE, start);
        world.run(&events);
        world.finish_all(if release { Act::Release } else { Act::Settle });
        for (index, spec) in world.specs.iter().enumerate().filter(|(_, s)| !s.is_concurrency()) {
            let (mut reference, charges) = match (spec.settle, spec.algorithm) {
                (SettleAt::Send, Algorithm::TokenBucket) => continue,
                (SettleAt::Send, Algorithm::FixedWindow) if world.has_released() => continue,
                (SettleAt::Send, _) => (spec.reference(), world.charges_of(spec, EndedRequest::at_send)),
                _ => (spec.reference_at_settle(), world.charges_of(spec, EndedRequest::at_settle)),
            };
            charge(&mut *reference, charges);
            for later in [0, 1, 1 + u64::from(probe) * (spec.window / 200)] {
                let level = world.levels(later)[index];
                let used = reference.used(world.now + later);
                prop_assert_eq!(level.used, used, "{:?}", spec);
                prop_assert_eq!(level.available, spec.capacity().saturating_sub(used));
            }
        }
    }

    /// Under every rule, a settled level is at least the level of a reference charged the actual amount
    /// at send: no amount is refunded twice. Charged at send, a level is at most that of all
    /// reservations, including released ones.
    #[test]
    fn p3_refunds_are_never_counted_twice(
        specs in specs(), start in start(), events in events(30),
    ) {
        let mut world = World::new(specs, Margin::NONE, start);
        world.run(&events);
        world.finish_all(Act::Settle);
        for (index, spec) in world.specs.iter().enumerate().filter(|(_, s)| !s.is_concurrency()) {
            let level = world.levels(0)[index];
            if spec.algorithm != Algorithm::FixedWindow {
                let mut actual = spec.reference();
                charge(&mut *actual, world.charges_of(spec, EndedRequest::at_send));
                prop_assert!(level.used >= actual.used(world.now), "{:?} {:?}", spec, level);
            }
            if spec.settle == SettleAt::Send && !spec.is_anchored() {
                let mut reserved = spec.reference();
                charge(&mut *reserved, world.charges_of(spec, EndedRequest::reserved_at_send));
                prop_assert!(level.used <= reserved.used(world.now), "{:?} {:?}", spec, level);
            }
        }
    }

    /// `fresh_at` is the first time at which the usage is zero.
    #[test]
    fn p3_fresh_at_is_exact(
        specs in specs(), start in start(), events in events(20), delayed: bool,
    ) {
        let margin = if delayed { Margin::default() } else { Margin::NONE };
        let mut world = World::new(specs, margin, start);
        world.run(&events);
        world.finish_all(Act::Settle);
        for (index, level) in world.levels(0).into_iter().enumerate() {
            let wait = level.fresh_at.as_nanos().saturating_sub(world.now);
            prop_assert_eq!(world.levels(wait)[index].used, 0, "{:?}", level);
            if wait > 0 {
                prop_assert!(world.levels(wait - 1)[index].used > 0, "{:?}", level);
            }
        }
    }

    /// A fresh bucket grants and refuses every cost like a new one, so it can be dropped.
    #[test]
    fn p3_fresh_bucket_equals_new_one(
        specs in specs(), start in start(), events in events(12), probe: u8,
    ) {
        let mut world = World::new(specs, Margin::default(), start);
        world.run(&events);
        world.finish_all(Act::Settle);
        for ((spec, rule), bucket) in world.specs.iter().zip(&world.rules).zip(&world.buckets) {
            if !bucket.is_fresh(rule, at(world.now)) {
                continue;
            }
            let (rule, new) = (std::slice::from_ref(rule), Bucket::new(rule));
            for amount in [1, size(probe, spec.capacity()), spec.capacity(), 2 * spec.capacity()] {
                let cost = Cost::new().requests(amount).tokens(amount).input_tokens(amount);
                let answer = |b: &Bucket| check(rule, std::slice::from_ref(b), &cost, at(world.now));
                prop_assert_eq!(answer(bucket), answer(&new), "{} of {:?}", amount, spec);
            }
        }
    }

    /// A sliding window whose log is too long to be exact never counts less than the reference, and
    /// drops entries at most 1/256 of the window late.
    #[test]
    fn p3_long_log_never_counts_less_than_reference(
        window in window(), sends in vec(any::<u16>(), 140..=280),
    ) {
        let spec = Spec {
            dimension: Dimension::Tokens,
            algorithm: Algorithm::SlidingWindow,
            burst: 0,
            amount: 1 << 30,
            window,
            settle: SettleAt::Send,
            civil: None,
            debt: false,
            share: 100,
        };
        let (rules, mut now) = ([spec.rule(Margin::NONE)], 1_800_000_000_000_000_000);
        let (mut buckets, mut log) = (vec![Bucket::new(&rules[0])], Vec::new());
        for send in sends {
            now += window / 160 * u64::from(send % 4) / 2 + u64::from(send / 4 % 2);
            let reserved = Cost::new().tokens(u64::from(send / 8 % 32) + 1);
            let actual = Cost::new().tokens(u64::from(send >> 8) / 8);
            reserve(&rules, &mut buckets, &reserved, at(now)).unwrap();
            settle(&rules, &mut buckets, at(now), &reserved, &actual, at(now + 1));
            log.push((now, actual.amount(&Dimension::Tokens)));
        }
        let mut reference = SlidingWindow::new(spec.amount, window);
        charge(&mut reference, log);
        for later in [0, window / 7, window / 2, window - 1, window, window + window / 255] {
            let used = buckets[0].level(&rules[0], at(now + later)).used;
            let most = reference.used(now + later - window / 256);
            prop_assert!(used >= reference.used(now + later), "dropped too early");
            prop_assert!(used <= most, "{} used at +{}, at most {} expected", used, later, most);
        }
    }
}

fn assert_held(world: &World) -> Result<(), TestCaseError> {
    for ((spec, rule), level) in world.specs.iter().zip(&world.rules).zip(world.levels(0)) {
        let amounts = world.open.iter().map(|sent| sent.reserved.amount(&spec.dimension));
        let held = if rule.holds() { amounts.sum() } else { 0 };
        prop_assert_eq!(level.held, held, "{:?}", spec);
    }
    Ok(())
}

fn charge(reference: &mut dyn Reference, mut charges: Vec<(u64, u64)>) {
    charges.sort_unstable();
    for (at, amount) in charges {
        reference.take(amount, at);
    }
}
