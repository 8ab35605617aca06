use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Returns the wait before the given retry, counted from 0, of a failure that states no delay.
///
/// As in the official SDKs, the wait starts at 0.5 s and doubles up to 8 s, minus a random part of up
/// to a quarter.
pub(super) fn backoff(retry: u32) -> Duration {
    let full = FIRST.saturating_mul(1 << retry.min(DOUBLINGS)).min(LONGEST);
    // The random seed of a hash map is good enough for jitter.
    let random = RandomState::new().hash_one(retry) % 1_024;
    let jitter = full / 4 / 1_024 * u32::try_from(random).unwrap_or(0);
    full - jitter
}

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);
const DOUBLINGS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_eight_seconds_minus_jitter() {
        let full_waits = [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000].map(Duration::from_millis);
        for (retry, full) in (0..).zip(full_waits) {
            let waits: Vec<_> = (0..100).map(|_| backoff(retry)).collect();
            assert!(waits.iter().all(|wait| *wait <= full && *wait > full * 3 / 4), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "no jitter at {full:?}");
        }
        assert!(backoff(u32::MAX) <= LONGEST);
    }
}
