use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::Saved;

/// Subtracts refunds, which are negative entries, from usage. A refund reduces the first usage
/// since about its time, then the last usage before it. A refund without matching usage is ignored:
/// the usage was at another time, or has expired.
pub(super) fn net_usage(mut entries: Vec<(Timestamp, i64)>, window: u64) -> Saved {
    entries.sort_unstable_by_key(|&(at, _)| at);
    let mut taken: Vec<(Timestamp, u64)> = Vec::new();
    for &(at, amount) in entries.iter().filter(|(_, amount)| *amount > 0) {
        match taken.last_mut() {
            Some(last) if last.0 == at => last.1 = last.1.saturating_add(amount.unsigned_abs()),
            _ => taken.push((at, amount.unsigned_abs())),
        }
    }
    for &(at, amount) in entries.iter().filter(|(_, amount)| *amount < 0) {
        subtract(
            &mut taken,
            at,
            amount.unsigned_abs(),
            Duration::from_nanos(window / TOLERANCE_DIVISOR),
        );
    }
    taken.retain(|&(_, amount)| amount > 0);
    Saved { taken, held: 0 }
}

fn subtract(taken: &mut [(Timestamp, u64)], at: Timestamp, mut amount: u64, tolerance: Duration) {
    let (before, since) = taken.split_at_mut(taken.partition_point(|entry| entry.0 < at));
    let near = |entry: &&mut (Timestamp, u64)| entry.0.abs_diff(at) <= tolerance;
    for entry in since.iter_mut().chain(before.iter_mut().rev()).filter(near) {
        let part = entry.1.min(amount);
        (entry.1, amount) = (entry.1 - part, amount - part);
        if amount == 0 {
            return;
        }
    }
}

/// The tolerance for matching times is 1/32 of a window: a limiter rounds times to 1/64 of a
/// window, and merging moves them by less than that.
const TOLERANCE_DIVISOR: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refunds_reduce_only_matching_entries() {
        let at = Timestamp::from_nanos;
        let net_usage = |entries: Vec<(u64, i64)>| {
            let entries = entries.into_iter().map(|(time, amount)| (at(time), amount));
            let taken = net_usage(entries.collect(), 100).taken.into_iter();
            taken.map(|(time, amount)| (time.as_nanos(), amount)).collect::<Vec<_>>()
        };
        assert_eq!(net_usage(vec![(1, 5), (2, 3), (2, -3), (3, 4)]), [(1, 5), (3, 4)]);
        assert_eq!(net_usage(vec![(2, -3), (2, 5)]), [(2, 2)]);
        assert_eq!(net_usage(vec![(1, 5), (3, 4), (2, -6)]), [(1, 3)]);
        assert_eq!(net_usage(vec![(1, -9), (2, 4)]), []);
        assert_eq!(net_usage(vec![(1, 5), (3, -9), (7, 4)]), [(7, 4)], "of another time");
        assert_eq!(net_usage(vec![(1, i64::MAX), (1, i64::MAX)]), [(1, u64::MAX - 1)]);
    }
}
