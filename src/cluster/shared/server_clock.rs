use crate::timestamp::Timestamp;

/// The clock of a server, as this process knows it, and how it was set forward meanwhile.
///
/// Times of the server are in microseconds since the Unix epoch.
#[derive(Debug, Default)]
pub(super) struct ServerClock {
    /// What it said last, of a call that was sent then by this process's own clock.
    server: u64,
    own: Timestamp,
    /// When it was first seen to be set forward, by itself; and by how much.
    jumps: Vec<(u64, u64)>,
}

impl ServerClock {
    /// What it should say at a time of this process's own; 0 where it has said nothing yet.
    pub(super) fn at(&self, own: Timestamp) -> u64 {
        match self.server {
            0 => 0,
            server => server.saturating_add(own.nanos_since(self.own) / 1_000),
        }
    }

    /// It said this to a call that was sent and answered at these times of this process's own. An
    /// answer that was late doesn't make it look set forward.
    pub(super) fn record(&mut self, server: u64, sent: Timestamp, received: Timestamp) {
        let (earliest, latest) = (self.at(sent), self.at(received));
        if latest > 0 && server >= latest.saturating_add(MIN_JUMP) {
            if self.jumps.len() >= MAX_JUMPS {
                self.jumps.remove(0);
            }
            self.jumps.push((server, server - latest));
        } else if server.saturating_add(MIN_JUMP) <= earliest {
            // Set back: it will come to the same times once more.
            self.jumps.clear();
        }
        (self.server, self.own) = (server, sent);
    }

    pub(super) fn has_jumped(&self) -> bool {
        !self.jumps.is_empty()
    }

    /// By how much a state has to move that this process saw last at a time of the server's. One that
    /// it never saw is moved only as long as the server can tell that nobody else has done so.
    pub(super) fn jump_since(&self, seen: Option<u64>, now: u64) -> u64 {
        let lacks = |&&(at, by): &&(u64, u64)| match seen {
            Some(seen) => seen < at,
            None => now < at.saturating_add(by),
        };
        self.jumps.iter().filter(lacks).fold(0, |sum: u64, (_, by)| sum.saturating_add(*by))
    }
}

/// A server's clock that is less ahead, in microseconds, is late rather than set forward.
const MIN_JUMP: u64 = 1_000_000;
/// So many settings of a clock are remembered.
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

    /// Seen a second ago.
    fn seen() -> ServerClock {
        let mut clock = ServerClock::default();
        clock.record(NOON, at(0), at(1_000));
        clock
    }

    #[test]
    fn clock_set_forward_applies_to_every_key_seen_before() {
        let mut clock = seen();
        let after = NOON + HOUR + SECOND;
        clock.record(after, at(1_000_000_000), at(1_000_000_000));
        // Whatever is noted next, by whichever key.
        clock.record(after + SECOND, at(2_000_000_000), at(2_000_000_000));
        assert_eq!(clock.jump_since(Some(NOON), after), HOUR);
        assert_eq!(clock.jump_since(Some(after), after), 0);
        assert_eq!(clock.jump_since(None, after), HOUR);
        assert_eq!(clock.jump_since(None, after + HOUR), 0);
    }

    #[test]
    fn late_or_reordered_responses_are_no_clock_change() {
        let mut clock = seen();
        clock.record(NOON + 5 * SECOND, at(1_000_000_000), at(5_000_000_000));
        clock.record(NOON + 2 * SECOND, at(2_000_000_000), at(9_000_000_000));
        clock.record(NOON + 10 * SECOND, at(9_500_000_000), at(10_000_000_000));
        assert!(!clock.has_jumped());
    }

    #[test]
    fn clock_set_back_moves_no_times() {
        let mut clock = seen();
        clock.record(NOON + HOUR, at(1_000), at(1_000));
        clock.record(NOON, at(2_000), at(2_000));
        assert_eq!(clock.jump_since(Some(0), NOON), 0);
    }
}
