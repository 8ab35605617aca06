use std::time::Duration;

use crate::timestamp::Timestamp;

/// Limits the outages in the log, so that a connection that breaks again and again does not flood it.
#[derive(Debug, Default)]
pub(super) struct LogLimit {
    /// The start of the current interval.
    since: Option<Timestamp>,
    logged: u32,
    /// The outages since the last one that was logged.
    unlogged: u64,
}

impl LogLimit {
    /// Starts to log an outage. Returns how many were not logged since the last one that was; `None` if
    /// this one must not be logged yet.
    pub(super) fn begin(&mut self, now: Timestamp) -> Option<u64> {
        if self.since.is_none_or(|since| now - since >= INTERVAL) {
            (self.since, self.logged) = (Some(now), 0);
        }
        if self.logged >= MAX_LOGGED {
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.unlogged))
    }

    /// Counts an outage that ended without being logged.
    pub(super) fn count_unlogged(&mut self) {
        self.unlogged += 1;
    }
}

const INTERVAL: Duration = Duration::from_secs(10);
/// The maximum number of outages to log per interval.
const MAX_LOGGED: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_outages_are_folded_into_the_next_line() {
        let mut limit = LogLimit::default();
        let (mut logged, mut folded) = (0, 0);
        // An outage every 100 ms for a minute.
        for tenth in 0..600 {
            match limit.begin(Timestamp::from_nanos(tenth * 100_000_000)) {
                Some(unlogged) => (logged, folded) = (logged + 1, folded + unlogged),
                None => limit.count_unlogged(),
            }
        }
        assert_eq!(logged, 18);
        // Those since the last line are in the next one.
        let last = limit.begin(Timestamp::from_nanos(60_000_000_000)).unwrap();
        assert_eq!(logged + folded + last, 600);
    }
}
