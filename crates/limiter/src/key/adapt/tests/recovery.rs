//! Recovery of a reduced key, and the time at which a cost fits meanwhile.

use super::headers::reading;
use super::*;

const NANOSECOND: Duration = Duration::from_nanos(1);

#[test]
fn faster_pace_brings_the_next_step_forward() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(100)));
    adapt.reduce(&mut limits, steady(), START);
    let fast = pace(Reduction::new().interval(Duration::from_secs(2)).recovery_factor(3.0));
    adapt.set_pace(fast, START + 10 * S);
    assert_eq!(adapt.recovers_at(), Some(START + 12 * S));
    assert!(!adapt.is_idle(START + 12 * S - NANOSECOND) && adapt.is_idle(START + 12 * S));
    adapt.set_pace(steady(), START + 10 * S);
    assert_eq!(adapt.recovers_at(), Some(START + 12 * S));
    assert!(adapt.recover(&mut limits, START + 3_600 * S));
    assert_eq!((amounts(&limits), adapt.is_reduced()), (vec![100], false));
}

#[derive(Debug, Clone)]
struct Reduced {
    quota: Quota,
    reduction: Reduction,
    /// Seconds that pass before a cost is charged and the limits are reduced.
    cuts: Vec<(u64, u64)>,
}

impl Reduced {
    fn build(&self) -> (Adapt, Limits, Timestamp) {
        let (mut adapt, mut limits, mut now) = (Adapt::default(), limits(&self.quota), START);
        for &(after, amount) in &self.cuts {
            now += Duration::from_secs(after);
            adapt.recover(&mut limits, now);
            limits.charge(&cost(amount), now);
            adapt.reduce(&mut limits, pace(self.reduction), now);
        }
        (adapt, limits, now)
    }
}

fn cost(amount: u64) -> Cost {
    Cost::new().requests(amount).tokens(amount * 3)
}

fn reduced() -> impl Strategy<Value = Reduced> {
    let algorithms = [
        Algorithm::TokenBucket,
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::ClockWindow,
    ];
    let window = || proptest::sample::select(vec![10, 60, 600, 86_400_u64]);
    let limit = |dimension: &'static Dimension, most: u64| {
        let made = move |(amount, window): (u64, u64)| {
            let window = Window::new(Duration::from_secs(window)).unwrap();
            Limit::new(dimension.clone(), amount, window).unwrap()
        };
        (1..most, window()).prop_map(made)
    };
    let quota = (
        proptest::sample::select(algorithms.to_vec()),
        limit(&Dimension::Requests, 300),
        proptest::option::of(limit(&Dimension::Tokens, 3_000)),
        any::<bool>(),
    );
    let quota = quota.prop_map(|(algorithm, first, second, concurrency)| {
        let quota = second.into_iter().fold(Quota::new().limit(first), Quota::limit);
        let quota = if concurrency { quota.concurrency(9) } else { quota };
        quota.with_algorithm(algorithm)
    });
    let reduction = (1..99_u32, 1..40_u64, 101..400_u32);
    let reduction = reduction.prop_map(|(factor, interval, recovery)| {
        let reduction = Reduction::new().interval(Duration::from_secs(interval));
        let recovery = f64::from(recovery) / 100.0;
        reduction.factor(f64::from(factor) / 100.0).recovery_factor(recovery)
    });
    let cuts = proptest::collection::vec((0..40_u64, 0..200_u64), 1..4);
    (quota, reduction, cuts).prop_map(|(quota, reduction, cuts)| Reduced { quota, reduction, cuts })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn late_recovery_equals_recovery_in_steps(
        reduced in reduced(),
        after in 0..6_000_u64,
        part in 0..1_000_u64,
    ) {
        let (mut late, mut late_limits, now) = reduced.build();
        let at = now + Duration::from_secs(after);
        let (is_idle, next) = (late.is_idle(at), late.recovers_at());
        let mut expected = amounts(&late_limits);
        let original = Arc::clone(late.full_plan(&late_limits));
        late.recover(&mut late_limits, at);

        let (mut timely, mut timely_limits, _) = reduced.build();
        let originals = amounts(&limits(&reduced.quota));
        while let Some(step) = timely.recovers_at().filter(|step| *step <= at) {
            let Limits { plan, buckets } = &timely_limits;
            let before = Limits { plan: Arc::clone(plan), buckets: buckets.clone() };
            let is_over = timely.recover(&mut timely_limits, step);
            prop_assert_eq!(is_over, !timely.is_reduced());
            let pace = pace(reduced.reduction);
            for (amount, original) in expected.iter_mut().zip(&originals) {
                *amount = pace.recover(*amount, *original);
            }
            prop_assert_eq!(&amounts(&timely_limits), &expected);
            prop_assert_eq!(is_over, expected == originals, "{:?}", next);
            let resized = before.resized(Arc::new(original.lowered(&expected)), step);
            prop_assert_eq!(&timely_limits.buckets, &resized.buckets);
        }

        let (mut twice, mut twice_limits, _) = reduced.build();
        twice.recover(&mut twice_limits, now + Duration::from_millis(after * part));
        twice.recover(&mut twice_limits, at);

        for (adapt, limits) in [(&late, &late_limits), (&twice, &twice_limits)] {
            prop_assert_eq!(amounts(limits), amounts(&timely_limits));
            prop_assert_eq!(&limits.buckets, &timely_limits.buckets);
            prop_assert_eq!(adapt.recovers_at(), timely.recovers_at());
            prop_assert_eq!(adapt.is_idle(at), is_idle);
        }
        prop_assert_eq!(is_idle, !timely.is_reduced(), "the end is known beforehand");
    }

    #[test]
    fn check_names_time_when_cost_fits(
        reduced in reduced(),
        after in 0..100_u64,
        amount in 0..400_u64,
        part in 0..1_000_u32,
    ) {
        let (adapt, limits, now) = reduced.build();
        let (at, cost) = (now + Duration::from_secs(after), cost(amount));
        let answer = adapt.check(&limits, &cost, at);
        let (mut recovered, mut recovered_limits, _) = reduced.build();
        recovered.recover(&mut recovered_limits, at);
        prop_assert_eq!(answer, recovered.check(&recovered_limits, &cost, at));
        match answer.map_err(|short| short.wait) {
            Ok(()) => {}
            Err(Wait::At(time)) => {
                prop_assert!(time > at);
                let between = at + (time - NANOSECOND - at) / 1_000 * part;
                let steps = recovered.recovers_at().into_iter().filter(|step| *step < time);
                for early in steps.chain([between, time - NANOSECOND]) {
                    prop_assert!(adapt.check(&limits, &cost, early).is_err(), "{}", early);
                }
                let interval = pace(reduced.reduction).interval;
                let four = recovered.recovers_at().is_none_or(|next| time < next + 4 * interval);
                prop_assert!(!four || adapt.check(&limits, &cost, time).is_ok());
            }
            Err(Wait::Never) => {
                let whole = self::limits(&reduced.quota);
                prop_assert!(whole.plan.rules.iter().any(|rule| !rule.can_admit(&cost)));
            }
            Err(Wait::Unknown) => prop_assert!(false, "no request is in flight"),
        }
    }
}

#[test]
fn check_of_cost_fitting_after_step_names_step() {
    let (mut adapt, mut limits) = (Adapt::default(), limits(&per_hour(100)));
    limits.charge(&requests(45), START);
    adapt.reduce(&mut limits, steady(), START);
    let wait = |n| adapt.check(&limits, &requests(n), START).map_err(|short| short.wait);
    assert_eq!(wait(5), Ok(()));
    assert_eq!(wait(10), Err(Wait::At(START + 30 * S)), "55 after a step");
    assert_eq!(wait(11), Err(Wait::At(START + 60 * S)), "60 after two");
    assert_eq!(wait(101), Err(Wait::Never));
    let early = adapt.check(&limits, &requests(10), START + 30 * S - NANOSECOND);
    assert_eq!(early.unwrap_err().wait, Wait::At(START + 30 * S));
    assert!(adapt.check(&limits, &requests(10), START + 30 * S).is_ok());
}

/// At the next step the bucket is full, but its limit rises too.
#[test]
fn check_of_cost_due_at_a_step_counts_the_raised_limit() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(120)));
    limits.charge(&requests(90), START);
    adapt.reduce(&mut limits, steady(), START);
    let step = START + 30 * S;
    assert_eq!(limits.buckets[0].level(&limits.plan.rules[0], step).available, 60);
    let Wait::At(time) = adapt.check(&limits, &requests(100), START).unwrap_err().wait else {
        panic!("the cost fits at some time");
    };
    // Six more at 66 a minute.
    assert_eq!(time, step + Duration::from_nanos((6 * 60 * 1_000_000_000_u64).div_ceil(66)));
    assert!(adapt.check(&limits, &requests(100), time).is_ok());
    assert!(adapt.check(&limits, &requests(100), time - NANOSECOND).is_err());
}

#[test]
fn check_of_cost_beyond_amounts_in_flight_has_unknown_wait() {
    let quota = Quota::new().tpm(100).with_algorithm(Algorithm::SlidingWindow);
    let (mut adapt, mut limits) = (Adapt::default(), limits(&quota));
    limits.commit(&Cost::new().tokens(45), START);
    adapt.reduce(&mut limits, steady(), START);
    let short = adapt.check(&limits, &Cost::new().tokens(10), START).unwrap_err();
    assert_eq!(short.wait, Wait::Unknown);
}

proptest! {
    #![proptest_config(config())]

    /// All times move with a clock that is set back.
    #[test]
    fn clock_set_back_keeps_all_times_relative(
        reduced in reduced(),
        back in 1..900_000_u64,
        after in 0..6_000_u64,
        amount in 0..400_u64,
    ) {
        let build = || {
            let (mut adapt, mut limits, now) = reduced.build();
            adapt.observe(&mut limits, &[], now, now);
            adapt.cool_down(7 * S, KeyPace { pace: None, spread_part: 0 }, now);
            (adapt, limits, now)
        };
        let (mut adapt, mut limits, now) = build();
        let (mut moved, mut moved_limits, _) = build();
        // Whole days, so that the windows of a calendar clock do not move.
        let back = Duration::from_secs(back / 86_400 * 86_400);
        moved.rebase(back);
        moved_limits.rebase(back);
        let at = now + Duration::from_secs(after);
        prop_assert_eq!(moved.cooling_until, adapt.cooling_until - back);
        prop_assert_eq!(moved.recovers_at(), adapt.recovers_at().map(|next| next - back));
        prop_assert_eq!(moved.is_idle(at - back), adapt.is_idle(at));
        let shift = |checked: Result<(), Shortfall>| match checked.map_err(|short| short.wait) {
            Err(Wait::At(time)) => Err(Wait::At(time - back)),
            other => other,
        };
        let checked = shift(adapt.check(&limits, &cost(amount), at));
        let moved_checked = moved.check(&moved_limits, &cost(amount), at - back);
        prop_assert_eq!(moved_checked.map_err(|short| short.wait), checked);
        let low = [reading(Dimension::Requests, 0)];
        for sent_at in [now - NANOSECOND, now, now + NANOSECOND] {
            prop_assert_eq!(moved.precedes_reduction(sent_at - back), adapt.precedes_reduction(sent_at));
            let proven = adapt.observe(&mut limits, &low, sent_at, now).by_others;
            let moved = moved.observe(&mut moved_limits, &low, sent_at - back, now - back).by_others;
            prop_assert_eq!(moved, proven);
        }
    }
}
