use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::Key;
use tollgate::Timestamp;

/// How often keys were denied lately, as `/debug` shows it. It is touched when a request is denied, and
/// bounded: of keys beyond it isn't known.
#[derive(Debug, Default)]
pub(super) struct Denied {
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    keys: HashMap<Key, Window>,
    /// When the first of them is over: before that there is nothing to sweep out.
    first_ends: Timestamp,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Timestamp,
    ends: Timestamp,
    denied: u64,
}

impl Denied {
    /// Counts one at this time.
    pub(super) fn count(&self, key: &str, window: Duration, now: Timestamp) {
        let ends = now + window;
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
    pub(super) fn of(&self, key: &str, now: Timestamp) -> u64 {
        let counted = self.counted.lock();
        counted.keys.get(key).filter(|known| known.holds(now)).map_or(0, |known| known.denied)
    }
}

impl Counted {
    /// Whether there is room for one more key, without those whose window is over.
    fn has_room(&mut self, now: Timestamp) -> bool {
        if self.keys.len() >= MOST && self.first_ends <= now {
            self.keys.retain(|_, known| known.holds(now));
            self.first_ends =
                self.keys.values().map(|known| known.ends).min().unwrap_or(Timestamp::MAX);
        }
        self.keys.len() < MOST
    }
}

impl Window {
    fn holds(&self, now: Timestamp) -> bool {
        (self.began..self.ends).contains(&now)
    }
}

/// Some 1 MB.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn denials_are_counted_for_their_window_and_no_longer() {
        let denied = Denied::default();
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
    fn a_flood_of_keys_takes_no_more_than_its_bound() {
        let denied = Denied::default();
        let window = Duration::from_nanos(10);
        let keys = || denied.counted.lock().keys.len();
        (0..MOST + 5).for_each(|key| denied.count(&key.to_string(), window, at(0)));
        assert_eq!(keys(), MOST);
        denied.count("later", window, at(10));
        assert_eq!((keys(), denied.of("later", at(10))), (1, 1));
    }
}
