//! Turns of processes whose share of a limit is less than one unit.

use std::time::Duration;

use crate::engine::{Parameters, Rule};

/// The processes that share a limit while the store is unavailable, as this one last knew them.
///
/// If there are more processes than units, each unit belongs to one process at a time: the server's time is
/// divided into slots, which go to the processes by rank. The owner of a slot admits one unit at its start. The
/// slots are so long that all units of consecutive slots are back before as many others are taken.
///
/// Times of the server are microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    pub(super) members: u64,
    /// The number of processes before this one.
    pub(super) rank: u64,
    /// The server's time when it last responded; 0 if it never has.
    pub(super) last_seen: u64,
    /// The expected time of the server.
    pub(super) now: u64,
    /// The longest time for which a request in flight counts.
    pub(super) reservation_ttl: u64,
}

impl Turns {
    /// Returns whether the processes take turns under this rule, as opposed to a share each.
    pub(super) fn apply_to(&self, rule: &Rule) -> bool {
        rule.capacity() < self.members
    }

    /// Returns the number of the current slot, and of the units that owners of slots may have taken since the
    /// last response of the server, those of this slot included.
    ///
    /// # Errors
    /// Returns the time until the next turn of this process. It has no turn if it has used slot `used`.
    pub(super) fn current(&self, rule: &Rule, used: Option<u64>) -> Result<(u64, u64), Duration> {
        let (spacing, usable) = self.slots(rule);
        let (slot, within) = (self.now / spacing, self.now % spacing);
        let ahead = (self.rank + self.members - slot % self.members) % self.members;
        if ahead == 0 && within < usable && used != Some(slot) {
            let begun = slot.saturating_sub(self.last_seen / spacing).saturating_add(1);
            return Ok((slot, begun.min(rule.capacity())));
        }
        let ahead = if ahead == 0 { self.members } else { ahead };
        Err(Duration::from_micros(ahead.saturating_mul(spacing).saturating_sub(within)))
    }

    /// Returns the length of a slot, and of the part of it in which its owner may admit a unit.
    fn slots(&self, rule: &Rule) -> (u64, u64) {
        let capacity = rule.capacity().max(1);
        // The time in which the whole capacity is back.
        let period = match rule.parameters() {
            Parameters::Token { burst, per_nano, per_token, .. } => {
                let nanos = u128::from(burst) * u128::from(per_token) / u128::from(per_nano.max(1));
                u64::try_from(nanos / 1_000).unwrap_or(u64::MAX)
            }
            Parameters::Concurrency { .. } => self.reservation_ttl,
            _ => rule.limit().window().as_nanos() / 1_000,
        };
        let usable = period / 4;
        let spacing = (period.saturating_add(usable).saturating_add(LAG) / capacity).max(1);
        (spacing, usable.min(spacing))
    }
}

/// The time in microseconds by which the processes' estimates of the server's time may differ, and by which
/// requests may reach the provider later than others.
const LAG: u64 = 500_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};

    fn rule(amount: u64, burst: u64, window: Duration) -> Rule {
        let limit = Limit::new(Dimension::Requests, amount, Window::new(window).unwrap()).unwrap();
        let limit = limit.with_burst(burst);
        Rule::new(&limit, Algorithm::TokenBucket, Margin::NONE, SettleAt::Send)
    }

    proptest! {
        #[test]
        fn units_of_all_processes_are_back_before_the_next(
            capacity in 1_u64..40,
            more in 1_u64..40,
            period in 1_000_000_u64..100_000_000,
            picks in prop::collection::vec(0.0..1.0_f64, 200),
        ) {
            let window = Duration::from_micros(period);
            let rule = rule(capacity, capacity, window);
            let members = capacity + more;
            let turns = |rank, now| Turns { members, rank, last_seen: 0, now, reservation_ttl: 0 };
            let (spacing, usable) = turns(0, 0).slots(&rule);
            let mut times = Vec::new();
            for (slot, pick) in (0_u64..).zip(&picks) {
                let now = slot * spacing + (usable as f64 * pick) as u64;
                let owners: Vec<u64> = (0..members)
                    .filter(|&rank| turns(rank, now).current(&rule, None).is_ok())
                    .collect();
                prop_assert_eq!(&owners, &[slot % members]);
                prop_assert!(turns(slot % members, now).current(&rule, Some(slot)).is_err());
                times.push(now);
            }
            for (at, time) in times.iter().enumerate() {
                if let Some(later) = times.get(at + usize::try_from(capacity).unwrap()) {
                    prop_assert!(later - time >= period, "{} us apart", later - time);
                }
            }
        }

        #[test]
        fn next_turn_is_a_turn(
            members in 3_u64..50,
            rank in 0_u64..50,
            now in 0_u64..1_000_000_000_000,
        ) {
            let rule = rule(2, 2, Duration::from_secs(60));
            let turns =
                |now| Turns { members, rank: rank % members, last_seen: 0, now, reservation_ttl: 0 };
            if let Err(wait) = turns(now).current(&rule, None) {
                let wait = u64::try_from(wait.as_micros()).unwrap();
                prop_assert!(turns(now + wait).current(&rule, None).is_ok());
                prop_assert!(turns(now + wait - 1).current(&rule, None).is_err());
            }
        }
    }
}
