//! P1: for any schedule in which no request uses more than its reservation, the charges of the
//! provider never exceed the provider's limit, at whatever time it charges. If a limit allows debt,
//! its provider allows debt too.

use paceline_limiter::quota::{Algorithm, Margin};
use proptest::prelude::*;

use super::reference::{FixedWindow, NamedWindow, Reference, TokenBucket};
use super::schedule::{Act, Event, Spec, config, events, specs, specs_at_send, start};
use super::world::World;

proptest! {
    #![proptest_config(config())]

    /// Rules that settle at the end are charged at any time between send and end; rules that settle
    /// at send are charged at send. Both are charged the actual usage. Released requests are never
    /// charged.
    #[test]
    fn p1_provider_is_never_overcharged(
        specs in specs(), start in start(), events in events(30),
    ) {
        let mut world = World::new(specs, Margin::NONE, start);
        run(&mut world, &events)?;
        judge(&world, Spec::reference)?;
    }

    /// Requests reach the provider up to 500 ms after they were sent, in any order.
    #[test]
    fn p1_margin_covers_late_arrivals_out_of_order(
        specs in specs_at_send(), start in start(), events in events(30),
    ) {
        let mut world = World::new(specs, Margin::default(), start);
        run(&mut world, &events)?;
        judge(&world, Spec::reference)?;
    }

    /// A request above the share of a limit, but within the whole limit, waits until the share is
    /// full. The whole limit is never exceeded.
    #[test]
    fn p1_share_never_overcharges_the_whole_limit(
        specs in specs(), share in 1..=100_u8, start in start(), events in events(30),
    ) {
        let ours = |s| Spec { debt: false, share, ..s };
        let mut world = World::new(specs.into_iter().map(ours).collect(), Margin::NONE, start);
        run(&mut world, &events)?;
        judge(&world, Spec::reference)?;
    }

    /// The same with requests that reach the provider late and out of order.
    #[test]
    fn p1_share_and_margin_cover_late_arrivals(
        specs in specs_at_send(), share in 1..=100_u8, start in start(), events in events(30),
    ) {
        let ours = |s| Spec { debt: false, share, ..s };
        let specs = specs.into_iter().map(ours).collect();
        let mut world = World::new(specs, Margin::default(), start);
        run(&mut world, &events)?;
        judge(&world, Spec::reference)?;
    }

    /// A sliding window is safe against any provider with the same amount and window.
    #[test]
    fn p1_sliding_window_is_safe_for_every_provider_algorithm(
        specs in specs(), start in start(), events in events(30), delayed: bool,
    ) {
        let slide =
            |s| Spec { algorithm: Algorithm::SlidingWindow, burst: 0, civil: None, debt: false, ..s };
        let margin = if delayed { Margin::default() } else { Margin::NONE };
        let mut world = World::new(specs.into_iter().map(slide).collect(), margin, start);
        run(&mut world, &events)?;
        judge(&world, |s| Box::new(TokenBucket::new(s.amount, s.window, s.amount)))?;
        judge(&world, |s| Box::new(FixedWindow::new(s.amount, s.window)))?;
        judge(&world, |s| {
            let window = s.window;
            Box::new(NamedWindow::new(s.amount, move |t| (i64::try_from(t / window).unwrap(), 0)))
        })?;
    }

    /// Without a margin and charged at send, a request is granted exactly if every reference has
    /// capacity: the engine refuses no request that fits.
    #[test]
    fn p1_every_fitting_request_is_granted(
        specs in specs_at_send(), start in start(), events in events(30),
    ) {
        let mut world = World::new(specs, Margin::NONE, start);
        let mut providers: Vec<_> = world.specs.iter().map(Spec::reference).collect();
        for event in events {
            world.advance(event);
            let cost = world.cost(event);
            let granted = world.reserve(&cost, event).is_ok();
            let amounts: Vec<_> = world.specs.iter().map(|s| cost.amount(&s.dimension)).collect();
            let mut sides = providers.iter_mut().zip(&world.specs).zip(&amounts);
            let fits = sides.all(|((provider, spec), &amount)| {
                amount == 0 || provider.fits(spec.needed(amount), world.now)
            });
            prop_assert_eq!(granted, fits, "{:?} at {}", &cost, world.now);
            for (provider, &amount) in providers.iter_mut().zip(&amounts) {
                if granted && amount > 0 {
                    provider.take(amount, world.now);
                }
            }
        }
    }
}

fn run(world: &mut World, events: &[Event]) -> Result<(), TestCaseError> {
    for event in events {
        world.run(std::slice::from_ref(event));
        for spec in world.specs.iter().filter(|s| s.is_concurrency()) {
            prop_assert!(world.open.len() as u64 <= spec.amount, "too many in flight");
        }
    }
    world.finish_all(Act::Settle);
    Ok(())
}

fn judge(
    world: &World,
    provider: impl Fn(&Spec) -> Box<dyn Reference>,
) -> Result<(), TestCaseError> {
    let rules = world.specs.iter().zip(&world.charges).filter(|(s, _)| !s.is_concurrency());
    for (spec, charges) in rules {
        let mut charges = charges.clone();
        charges.sort_unstable();
        let mut provider = provider(spec);
        for &(at, amount) in &charges {
            let fits = amount == 0 || provider.fits(spec.needed(amount), at);
            prop_assert!(fits, "{:?} refuses {} at {} of {:?}", spec, amount, at, &charges);
            provider.take(amount, at);
        }
    }
    Ok(())
}
