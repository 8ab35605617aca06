use paceline_limiter::Timestamp;
use paceline_limiter::seam;

/// Returns the outstanding usage of a continuously refilled bucket as one entry at the last time,
/// or `None` if it has refilled by `until`: the next use, or now.
///
/// The bucket refills by `refill` per `window` nanoseconds, rounded down. `taken` is sorted by
/// time.
pub(super) fn outstanding(
    taken: &[(Timestamp, u64)],
    refill: u64,
    window: u64,
    until: Timestamp,
) -> Option<(Timestamp, u64)> {
    let remaining = |missing: u64, nanos: u64| {
        let refilled = u128::from(refill) * u128::from(nanos) / u128::from(window.max(1));
        missing.saturating_sub(u64::try_from(refilled).unwrap_or(u64::MAX))
    };
    let sum = |(last, missing): (Timestamp, u64), &(at, amount): &(Timestamp, u64)| {
        (at, remaining(missing, seam::nanos_since(at, last)).saturating_add(amount))
    };
    let (last, missing) = taken.iter().fold((Timestamp::UNIX_EPOCH, 0), sum);
    (remaining(missing, seam::nanos_since(until, last)) > 0).then_some((last, missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refilled_amount_is_not_outstanding() {
        let outstanding = |taken: &[(u64, u64)], until| {
            let at = Timestamp::from_nanos;
            let taken: Vec<_> = taken.iter().map(|&(time, amount)| (at(time), amount)).collect();
            let left = outstanding(&taken, 10, 100, at(until));
            left.map(|(time, amount)| (time.as_nanos(), amount))
        };
        assert_eq!(outstanding(&[], 5), None);
        assert_eq!(outstanding(&[(0, 10)], 99), Some((0, 10)));
        assert_eq!(outstanding(&[(0, 10)], 100), None);
        // Several amounts refill one after another.
        assert_eq!(outstanding(&[(0, 10), (50, 5), (100, 5)], 199), Some((100, 10)));
        assert_eq!(outstanding(&[(0, 10), (50, 5), (100, 5)], 200), None);
        // The bucket had refilled before the next use.
        assert_eq!(outstanding(&[(0, 10), (1_000, 3)], 1_001), Some((1_000, 3)));
        assert_eq!(outstanding(&[(0, u64::MAX), (1, u64::MAX)], 2), Some((1, u64::MAX)));
    }
}
