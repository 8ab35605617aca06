use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How long to wait before the `tries`th resend (from 0) of what names no delay: as the official SDKs
/// do, half a second, twice as long each time, at most 8 s, less up to a quarter of that.
pub(super) fn backoff(tries: u32) -> Duration {
    let whole = FIRST.saturating_mul(1 << tries.min(DOUBLINGS)).min(LONGEST);
    // Hash maps are seeded at random; nothing here needs better.
    let random = RandomState::new().hash_one(tries) % 1_024;
    let less = whole / 4 / 1_024 * u32::try_from(random).unwrap_or(0);
    whole - less
}

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);
const DOUBLINGS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_eight_seconds_and_spreads_over_a_quarter() {
        let wholes = [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000].map(Duration::from_millis);
        for (tries, whole) in (0..).zip(wholes) {
            let some: Vec<_> = (0..100).map(|_| backoff(tries)).collect();
            assert!(some.iter().all(|wait| *wait <= whole && *wait > whole * 3 / 4), "{some:?}");
            assert!(some.iter().any(|wait| *wait != some[0]), "{whole:?} is always the same");
        }
        assert!(backoff(u32::MAX) <= LONGEST);
    }
}
