use paceline_limiter::Timestamp;
use paceline_limiter::seam;

/// A change by which a server's clock was set forward, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jump {
    /// The server time after the change.
    pub(super) at: u64,
    pub(super) by: u64,
}

/// An estimate of a server's clock, and the times at which it was set forward.
///
/// Server times are microseconds.
#[derive(Debug, Default)]
pub(super) struct ServerClock {
    /// The last known server time, and the local time at which its call was sent.
    server: u64,
    own: Timestamp,
    /// The local time of the response.
    received: Timestamp,
    /// Forward changes less backward ones, oldest first.
    jumps: Vec<Jump>,
}

impl ServerClock {
    /// Returns the expected server time at a local time; 0 if unknown.
    pub(super) fn at(&self, own: Timestamp) -> u64 {
        match self.server {
            0 => 0,
            server => server.saturating_add(seam::nanos_since(own, self.own) / 1_000),
        }
    }

    /// Returns the server time of the last response.
    pub(super) fn last_seen(&self) -> u64 {
        self.server
    }

    /// Records the server time in a response, and returns whether the clock was set back. `sent` and
    /// `received` are the local times of the call and its response, so that a late response is not
    /// mistaken for a clock change.
    pub(super) fn record(&mut self, server: u64, sent: Timestamp, received: Timestamp) -> bool {
        let (earliest, latest) = (self.earliest(sent), self.at(received));
        let is_set_back = server.saturating_add(MIN_JUMP) <= earliest;
        if latest > 0 && server >= latest.saturating_add(MIN_JUMP) {
            self.add_jump(Jump { at: server, by: server - latest });
        } else if is_set_back {
            self.take_back(earliest - server, server);
        }
        (self.server, self.own, self.received) = (server, sent, received);
        is_set_back
    }

    /// Takes a backward change to time `server` off the latest forward changes. A state that was seen in
    /// between counts as seen at `server`, so that no change applies to it.
    fn take_back(&mut self, mut by: u64, server: u64) {
        while let Some(last) = self.jumps.last_mut() {
            let taken = by.min(last.by);
            (last.by, by) = (last.by - taken, by - taken);
            if last.by > 0 {
                break;
            }
            self.jumps.pop();
        }
        for jump in &mut self.jumps {
            jump.at = jump.at.min(server);
        }
    }

    /// Returns the earliest time that the server's clock can show at a local time: the last known
    /// time may be that of any moment until its response.
    fn earliest(&self, own: Timestamp) -> u64 {
        let (after, before) =
            (seam::nanos_since(own, self.received), seam::nanos_since(self.received, own));
        self.server.saturating_add(after / 1_000).saturating_sub(before / 1_000)
    }

    fn add_jump(&mut self, jump: Jump) {
        self.jumps.push(jump);
        self.drop_oldest();
    }

    /// Adds the changes that other processes noticed before this one started.
    pub(super) fn add_earlier(&mut self, jumps: &[Jump]) {
        self.jumps.splice(..0, jumps.iter().copied());
        self.drop_oldest();
    }

    /// Drops the oldest changes above the maximum: they apply to the fewest keys, those not seen since.
    fn drop_oldest(&mut self) {
        let excess = self.jumps.len().saturating_sub(MAX_JUMPS);
        self.jumps.drain(..excess);
    }

    /// Returns all forward changes.
    pub(super) fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    /// Returns the forward changes since this process last saw a state at server time `seen`: all if it never
    /// has.
    pub(super) fn jumps_since(&self, seen: Option<u64>) -> &[Jump] {
        let is_earlier = |jump: &Jump| seen.is_some_and(|seen| jump.at <= seen);
        &self.jumps[self.jumps.partition_point(is_earlier)..]
    }
}

/// The minimum difference, in microseconds, that counts as a clock change rather than latency.
const MIN_JUMP: u64 = 1_000_000;
/// The maximum number of clock changes to keep.
const MAX_JUMPS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;
    const NOON: u64 = 1_000_000 * SECOND;
    const HOUR: u64 = 3_600 * SECOND;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    /// Returns a clock with one record.
    fn recorded_clock() -> ServerClock {
        let mut clock = ServerClock::default();
        clock.record(NOON, at(0), at(1_000));
        clock
    }

    #[test]
    fn clock_set_forward_applies_to_every_key_seen_before() {
        let mut clock = recorded_clock();
        let after = NOON + HOUR + SECOND;
        clock.record(after, at(1_000_000_000), at(1_000_000_000));
        // A later record, by any key, does not hide the change.
        clock.record(after + SECOND, at(2_000_000_000), at(2_000_000_000));
        let jump = Jump { at: after, by: HOUR };
        assert_eq!(clock.jumps_since(Some(NOON)), [jump]);
        assert_eq!(clock.jumps_since(Some(after)), []);
        assert_eq!(clock.jumps_since(None), [jump]);
    }

    #[test]
    fn late_or_reordered_responses_are_no_clock_change() {
        let mut clock = recorded_clock();
        assert!(!clock.record(NOON + 5 * SECOND, at(1_000_000_000), at(5_000_000_000)));
        assert!(!clock.record(NOON + 2 * SECOND, at(2_000_000_000), at(9_000_000_000)));
        assert!(!clock.record(NOON + 10 * SECOND, at(9_500_000_000), at(10_000_000_000)));
        assert!(clock.jumps().is_empty());
    }

    /// Returns changes of an hour each, one after each of these hours.
    fn jumps_at(hours: std::ops::RangeInclusive<u64>) -> Vec<Jump> {
        hours.map(|hour| Jump { at: NOON + 2 * hour * HOUR, by: HOUR }).collect()
    }

    #[test]
    fn latest_changes_are_kept_in_whatever_order_they_are_learned() {
        let mut noticed = ServerClock::default();
        jumps_at(1..=20).into_iter().for_each(|jump| noticed.add_jump(jump));
        assert_eq!(noticed.jumps(), jumps_at(5..=20));
        let mut started_later = ServerClock::default();
        jumps_at(18..=20).into_iter().for_each(|jump| started_later.add_jump(jump));
        started_later.add_earlier(&jumps_at(2..=17));
        assert_eq!(started_later.jumps(), jumps_at(5..=20));
    }

    #[test]
    fn clock_set_back_moves_no_times() {
        let mut clock = recorded_clock();
        assert!(!clock.record(NOON + HOUR, at(1_000), at(1_000)));
        assert!(clock.record(NOON, at(2_000), at(2_000)));
        assert_eq!(clock.jumps_since(Some(0)), []);
    }

    #[test]
    fn clock_set_back_takes_off_the_latest_changes() {
        let mut clock = recorded_clock();
        assert!(!clock.record(NOON + HOUR, at(0), at(0)));
        assert!(!clock.record(NOON + 2 * HOUR, at(0), at(0)));
        assert!(clock.record(NOON + HOUR / 2, at(0), at(0)));
        assert_eq!(clock.jumps(), [Jump { at: NOON + HOUR / 2, by: HOUR / 2 }]);
    }
}
