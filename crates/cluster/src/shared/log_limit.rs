use std::time::Duration;

use paceline_limiter::Timestamp;

/// Limits the lines about repeated events, so that a connection that breaks again and again does not flood
/// the log.
#[derive(Debug)]
pub(super) struct LogLimit {
    /// The maximum number of events to log per interval.
    most: u32,
    /// The start of the current interval.
    since: Option<Timestamp>,
    logged: u32,
    /// The events since the last one that was logged.
    unlogged: u64,
}

impl LogLimit {
    /// Creates a limit of this many events in ten seconds.
    pub(super) const fn new(most: u32) -> Self {
        Self { most, since: None, logged: 0, unlogged: 0 }
    }

    /// Starts to log an event. Returns the number of events since the last one that was logged; `None` if
    /// this one must not be logged yet.
    pub(super) fn begin(&mut self, now: Timestamp) -> Option<u64> {
        if self.since.is_none_or(|since| now - since >= INTERVAL) {
            (self.since, self.logged) = (Some(now), 0);
        }
        if self.logged >= self.most {
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.unlogged))
    }

    /// Counts an event that isn't logged.
    pub(super) fn count_unlogged(&mut self) {
        self.unlogged += 1;
    }
}

const INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_outages_are_folded_into_the_next_line() {
        let mut limit = LogLimit::new(3);
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
