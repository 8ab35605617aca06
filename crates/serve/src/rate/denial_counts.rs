use std::collections::HashMap;
use std::time::Duration;

use paceline::Key;
use paceline::Timestamp;
use parking_lot::Mutex;

/// The numbers of recently denied requests by key, for `/debug`. The number of keys is bounded; further
/// keys are not counted.
#[derive(Debug, Default)]
pub(super) struct DenialCounts {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    keys: HashMap<Key, Window>,
    /// The earliest end of a window; keys are not removed before it.
    first_ends: Timestamp,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Timestamp,
    ends: Timestamp,
    denied: u64,
}

impl DenialCounts {
    /// Counts a denied request at this time.
    pub(super) fn count(&self, key: &str, window: Duration, now: Timestamp) {
        let ends = now + window;
        let new = Window { began: now, ends, denied: 0 };
        let mut counts = self.counts.lock();
        if let Some(window) = counts.keys.get_mut(key) {
            if !window.contains(now) {
                *window = new;
            }
            window.denied += 1;
            return;
        }
        if counts.has_capacity(now) {
            counts.first_ends = counts.first_ends.min(ends);
            counts.keys.insert(key.into(), Window { denied: 1, ..new });
        }
    }

    /// Returns the number of denied requests of a key in its current window.
    pub(super) fn of(&self, key: &str, now: Timestamp) -> u64 {
        let counts = self.counts.lock();
        counts.keys.get(key).filter(|window| window.contains(now)).map_or(0, |window| window.denied)
    }
}

impl Counts {
    /// Returns true if another key can be added, after removing keys whose window is over.
    fn has_capacity(&mut self, now: Timestamp) -> bool {
        if self.keys.len() >= MAX_KEYS && self.first_ends <= now {
            self.keys.retain(|_, window| window.contains(now));
            self.first_ends =
                self.keys.values().map(|window| window.ends).min().unwrap_or(Timestamp::MAX);
        }
        self.keys.len() < MAX_KEYS
    }
}

impl Window {
    fn contains(&self, now: Timestamp) -> bool {
        (self.began..self.ends).contains(&now)
    }
}

/// About 1 MB.
const MAX_KEYS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn denials_count_until_window_ends() {
        let denied = DenialCounts::default();
        let window = Duration::from_nanos(10);
        [0, 9].iter().for_each(|&now| denied.count("k", window, at(now)));
        assert_eq!(
            [denied.of("k", at(9)), denied.of("k", at(10)), denied.of("l", at(9))],
            [2, 0, 0]
        );
        denied.count("k", window, at(12));
        assert_eq!([denied.of("k", at(21)), denied.of("k", at(22))], [1, 0]);
    }

    #[test]
    fn flood_of_keys_is_bounded() {
        let denied = DenialCounts::default();
        let window = Duration::from_nanos(10);
        let keys = || denied.counts.lock().keys.len();
        (0..MAX_KEYS + 5).for_each(|key| denied.count(&key.to_string(), window, at(0)));
        assert_eq!(keys(), MAX_KEYS);
        denied.count("later", window, at(10));
        assert_eq!((keys(), denied.of("later", at(10))), (1, 1));
    }
}
