use std::collections::HashMap;
use std::time::Duration;

use compact_str::CompactString;
use parking_lot::Mutex;

/// How often keys were denied lately, as `/debug` shows it. It is touched when a request is denied, and
/// bounded: of keys beyond it isn't known.
#[derive(Debug, Default)]
pub(super) struct Denied {
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    keys: HashMap<CompactString, Window>,
    /// When the first of them is over: before that there is nothing to sweep out.
    first_ends: u64,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: u64,
    ends: u64,
    denied: u64,
}

impl Denied {
    /// Counts one, at this time in nanoseconds since the epoch.
    pub(super) fn count(&self, key: &str, window: Duration, now: u64) {
        let ends = now.saturating_add(u64::try_from(window.as_nanos()).unwrap_or(u64::MAX));
        let new = Window { began: now, ends, denied: 0 };
        let mut counted = self.counted.lock();
        if let Some(known) = counted.keys.get_mut(key) {
            if !known.holds(now) {
                *known = new;
            }
            known.denied += 1;
            return;
        }
        if counted.has_room(now) {
            counted.first_ends = counted.first_ends.min(ends);
            counted.keys.insert(key.into(), Window { denied: 1, ..new });
        }
    }

    /// How often a key was denied in the window of this time.
    pub(super) fn of(&self, key: &str, now: u64) -> u64 {
        let counted = self.counted.lock();
        counted.keys.get(key).filter(|known| known.holds(now)).map_or(0, |known| known.denied)
    }
}

impl Counted {
    /// Whether there is room for one more key, without those whose window is over.
    fn has_room(&mut self, now: u64) -> bool {
        if self.keys.len() >= MOST && self.first_ends <= now {
            self.keys.retain(|_, known| known.holds(now));
            self.first_ends = self.keys.values().map(|known| known.ends).min().unwrap_or(u64::MAX);
        }
        self.keys.len() < MOST
    }
}

impl Window {
    fn holds(&self, now: u64) -> bool {
        (self.began..self.ends).contains(&now)
    }
}

/// Some 1 MB.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_counted_for_their_window_and_no_longer() {
        let denied = Denied::default();
        let window = Duration::from_nanos(10);
        [0, 9].iter().for_each(|&now| denied.count("k", window, now));
        assert_eq!([denied.of("k", 9), denied.of("k", 10), denied.of("l", 9)], [2, 0, 0]);
        denied.count("k", window, 12);
        assert_eq!([denied.of("k", 21), denied.of("k", 22)], [1, 0]);
    }

    #[test]
    fn a_flood_of_keys_takes_no_more_than_its_bound() {
        let denied = Denied::default();
        let window = Duration::from_nanos(10);
        let keys = || denied.counted.lock().keys.len();
        (0..MOST + 5).for_each(|key| denied.count(&key.to_string(), window, 0));
        assert_eq!(keys(), MOST);
        denied.count("later", window, 10);
        assert_eq!((keys(), denied.of("later", 10)), (1, 1));
    }
}
