use paceline::Timestamp;
use std::collections::HashMap;

/// The grants that were returned, until they expire, so that none is returned twice.
///
/// Each grant is one bit in a word of 64 consecutive numbers, so that a client that acquires and returns
/// alternately needs little memory. The memory of each key is bounded.
#[derive(Debug, Default)]
pub(super) struct ReturnedGrants {
    keys: HashMap<u64, KeyReturns>,
    /// The number of words of all keys.
    words: usize,
    /// The earliest time at which words of a key expire.
    first_ends: Timestamp,
}

/// The reason why a grant cannot be returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReturnError {
    /// It was returned before, or has expired.
    AlreadyReturned,
    /// The memory for returned grants is used up; dropping a record would allow a second return.
    Full,
}

/// The returned grants of a key in two generations; the older one expires as a whole.
#[derive(Debug, Default)]
struct KeyReturns {
    older: Generation,
    newer: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    /// The latest expiry of its grants.
    until: Timestamp,
    words: HashMap<u64, u64>,
}

impl ReturnedGrants {
    /// Records the return of a grant, which expires at `until`. `key` is a hash of its key.
    pub(super) fn record(
        &mut self,
        key: u64,
        number: u64,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<(), ReturnError> {
        if self.words >= MAX_WORDS && self.first_ends <= now {
            self.sweep(now);
        }
        let has_capacity = self.words < MAX_WORDS;
        let known = self.keys.entry(key).or_default();
        let before = known.words();
        known.drop_expired(now);
        let result = known.record(number, until, has_capacity);
        let (words, until) = (known.words(), known.until());
        self.words = self.words + words - before;
        match words {
            0 => drop(self.keys.remove(&key)),
            _ => self.first_ends = self.first_ends.min(until),
        }
        result
    }

    /// Drops expired records.
    pub(super) fn sweep(&mut self, now: Timestamp) {
        self.keys.retain(|_, key| {
            key.drop_expired(now);
            key.words() > 0
        });
        self.words = self.keys.values().map(KeyReturns::words).sum();
        self.first_ends = self.keys.values().map(KeyReturns::until).min().unwrap_or(Timestamp::MAX);
    }
}

impl KeyReturns {
    fn record(
        &mut self,
        number: u64,
        until: Timestamp,
        has_capacity: bool,
    ) -> Result<(), ReturnError> {
        let (word, bit) = (number / 64, 1_u64 << (number % 64));
        let has = |generation: &Generation| {
            generation.words.get(&word).is_some_and(|bits| bits & bit != 0)
        };
        if has(&self.older) || has(&self.newer) {
            return Err(ReturnError::AlreadyReturned);
        }
        let is_new = !self.newer.words.contains_key(&word);
        if is_new && (!has_capacity || self.words() >= MAX_WORDS_PER_KEY) {
            return Err(ReturnError::Full);
        }
        *self.newer.words.entry(word).or_default() |= bit;
        self.newer.until = self.newer.until.max(until);
        Ok(())
    }

    /// Drops an expired generation; the newer one becomes the older.
    fn drop_expired(&mut self, now: Timestamp) {
        for _ in 0..2 {
            if self.older.until <= now {
                self.older = std::mem::take(&mut self.newer);
            }
        }
    }

    fn words(&self) -> usize {
        self.older.words.len() + self.newer.words.len()
    }

    /// Returns the next expiry of a generation.
    fn until(&self) -> Timestamp {
        match self.older.words.is_empty() {
            true => self.newer.until,
            false => self.older.until,
        }
    }
}

/// About 32 MB.
const MAX_WORDS: usize = 1_000_000;

/// A word is at least one grant, and 64 if their numbers are consecutive.
const MAX_WORDS_PER_KEY: usize = MAX_WORDS / 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn return_is_recorded_until_the_grant_expires() {
        let mut returned = ReturnedGrants::default();
        assert_eq!(returned.record(7, 1, at(100), at(0)), Ok(()));
        assert_eq!(returned.record(7, 1, at(100), at(99)), Err(ReturnError::AlreadyReturned));
        assert_eq!(returned.record(7, 2, at(150), at(99)), Ok(()));
        assert_eq!(returned.record(7, 3, at(250), at(150)), Ok(()));
        assert_eq!(returned.words, 1);
        returned.sweep(at(250));
        assert_eq!((returned.keys.len(), returned.words), (0, 0));
    }

    #[test]
    fn records_are_kept_while_others_expire() {
        let mut returned = ReturnedGrants::default();
        // A grant every 10 ns, each of which expires after 100 ns.
        for n in 0..1000_u64 {
            assert_eq!(returned.record(7, n, at(n * 10 + 100), at(n * 10)), Ok(()));
            for recent in n.saturating_sub(9)..=n {
                let error = returned.record(7, recent, at(n * 10 + 100), at(n * 10));
                assert_eq!(error, Err(ReturnError::AlreadyReturned), "{recent} at {n}");
            }
        }
        assert!(returned.words <= 4, "{}", returned.words);
    }

    #[test]
    fn returns_out_of_order_are_kept_until_expiry() {
        let mut returned = ReturnedGrants::default();
        assert_eq!(returned.record(7, 2, at(150), at(98)), Ok(()));
        assert_eq!(returned.record(7, 1, at(100), at(99)), Ok(()));
        assert_eq!(returned.record(7, 2, at(150), at(149)), Err(ReturnError::AlreadyReturned));
    }

    #[test]
    fn consecutive_returns_share_words() {
        let mut returned = ReturnedGrants::default();
        assert!((0..2_000_000).all(|number| returned.record(7, number, at(100), at(0)).is_ok()));
        assert_eq!(returned.record(7, 0, at(100), at(99)), Err(ReturnError::AlreadyReturned));
        // The first return belongs to the older generation.
        assert!(returned.words <= 2_000_000 / 64 + 1);
    }

    #[test]
    fn memory_of_one_key_is_bounded() {
        let mut returned = ReturnedGrants::default();
        let part = MAX_WORDS_PER_KEY as u64;
        // One word each: other keys have the numbers in between.
        assert!((0..part).all(|n| returned.record(7, n * 64, at(1_000), at(0)).is_ok()));
        assert_eq!(returned.record(7, part * 64, at(1_000), at(0)), Err(ReturnError::Full));
        assert_eq!(returned.record(8, part * 64 + 1, at(100), at(0)), Ok(()));
        assert_eq!(returned.record(7, 0, at(1_000), at(999)), Err(ReturnError::AlreadyReturned));
        assert_eq!(returned.record(7, part * 64, at(2_000), at(1_000)), Ok(()));
    }

    #[test]
    fn full_table_drops_expired_records_first() {
        let mut returned = ReturnedGrants::default();
        let keys = (MAX_WORDS / MAX_WORDS_PER_KEY) as u64 + 1;
        let fill = |returned: &mut ReturnedGrants, key, until| {
            (0..MAX_WORDS_PER_KEY as u64)
                .all(|n| returned.record(key, n * 64, at(until), at(0)).is_ok())
        };
        assert!((1..keys).all(|key| fill(&mut returned, key, 1_000 + key)));
        assert_eq!(returned.words, MAX_WORDS);
        assert_eq!(returned.record(99, 1, at(100), at(0)), Err(ReturnError::Full));
        assert_eq!(returned.record(99, 1, at(2_000), at(1_001)), Ok(()));
        assert_eq!(returned.words, MAX_WORDS - MAX_WORDS_PER_KEY + 1);
    }
}
