//! Turns of processes whose share of a limit is less than one unit.

use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::seam::{self, Parameters};

/// The processes that share limits while the store is unavailable, as this one last knew them.
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
    /// The server's time when it last answered a heartbeat; 0 if it never has.
    pub(super) last_seen: u64,
    /// The expected time of the server.
    pub(super) now: u64,
    /// The longest time for which a request in flight counts.
    pub(super) reservation_ttl: u64,
}

/// The turn of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// The end of the slot.
    pub(super) until: u64,
    /// The units that owners of slots may have taken since the last answer of the server, with this slot's.
    pub(super) units: u64,
}

impl Turns {
    /// Returns whether the processes take turns under this rule, as opposed to a share each.
    pub(super) fn apply_to(&self, rule: &Rule) -> bool {
        rule.capacity() < self.members
    }

    /// Returns the turn of this process under the rules of a key to which turns apply.
    ///
    /// # Errors
    /// Returns the time until its next turn. It has none before `used_until`, the end of the last one that it
    /// has used.
    pub(super) fn current(&self, rules: &[Rule], used_until: u64) -> Result<Turn, Duration> {
        let (spacing, usable) = self.slots(rules);
        let (slot, within) = (self.now / spacing, self.now % spacing);
        let ahead = (self.rank + self.members - slot % self.members) % self.members;
        if ahead == 0 && within < usable && self.now >= used_until {
            let units = slot.saturating_sub(self.last_seen / spacing).saturating_add(1);
            return Ok(Turn { until: (slot + 1).saturating_mul(spacing), units });
        }
        let ahead = if ahead == 0 { self.members } else { ahead };
        Err(Duration::from_micros(ahead.saturating_mul(spacing).saturating_sub(within)))
    }

    /// Returns the length of a slot, and of the part of it in which its owner may admit a unit: one schedule for
    /// all rules, since a request needs its turn under each of them.
    fn slots(&self, rules: &[Rule]) -> (u64, u64) {
        let turning = rules.iter().filter(|rule| self.apply_to(rule));
        let slots = turning.map(|rule| {
            let period = self.period(rule);
            let usable = (period / 4).max(MIN_USABLE);
            let spacing =
                period.saturating_add(usable).saturating_add(LAG) / rule.capacity().max(1);
            (spacing.max(1), usable)
        });
        let longest = |(spacing, usable): (u64, u64), (other, least): (u64, u64)| {
            (spacing.max(other), usable.min(least))
        };
        let (spacing, usable) = slots.reduce(longest).unwrap_or((1, 1));
        (spacing, usable.min(spacing))
    }

    /// Returns the time in which the whole capacity is back.
    fn period(&self, rule: &Rule) -> u64 {
        let window = || rule.limit().window().as_nanos();
        let nanos = match seam::parameters(rule) {
            Parameters::Token { burst, per_nano, per_token, .. } => {
                let nanos = u128::from(burst) * u128::from(per_token) / u128::from(per_nano.max(1));
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
            Parameters::Concurrency { .. } => return self.reservation_ttl,
            Parameters::Sliding { span, .. } => span,
            Parameters::Fixed { margin, .. } | Parameters::Grid { margin, .. } => {
                window().saturating_add(margin)
            }
        };
        nanos.div_ceil(1_000)
    }
}

/// The time in microseconds by which the processes' estimates of the server's time may differ.
const LAG: u64 = 500_000;

/// The minimum time in which the owner of a slot may admit a unit, for requests that try again every 20 ms.
const MIN_USABLE: u64 = 50_000;

#[cfg(test)]
mod tests {
    use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};
    use proptest::prelude::*;

    use super::*;

    fn rule(amount: u64, burst: u64, window: Duration) -> Rule {
        let limit = Limit::new(Dimension::Requests, amount, Window::new(window).unwrap()).unwrap();
        let limit = limit.with_burst(burst);
        Rule::new(&limit, Algorithm::TokenBucket, Margin::NONE, SettleAt::Send)
    }

    proptest! {
        #[test]
        fn units_of_all_processes_are_back_before_the_next(
            limits in prop::collection::vec((1_u64..40, 10_000_u64..100_000_000), 1..3),
            more in 1_u64..40,
            picks in prop::collection::vec(0.0..1.0_f64, 200),
        ) {
            let rule = |&(capacity, period)| rule(capacity, capacity, Duration::from_micros(period));
            let rules: Vec<Rule> = limits.iter().map(rule).collect();
            let members = limits.iter().map(|(capacity, _)| capacity).max().unwrap() + more;
            let turns = |rank, now| Turns { members, rank, last_seen: 0, now, reservation_ttl: 0 };
            let (spacing, usable) = turns(0, 0).slots(&rules);
            let mut times = Vec::new();
            for (slot, pick) in (0_u64..).zip(&picks) {
                let now = slot * spacing + (usable as f64 * pick) as u64;
                let owners: Vec<u64> = (0..members)
                    .filter(|&rank| turns(rank, now).current(&rules, 0).is_ok())
                    .collect();
                prop_assert_eq!(&owners, &[slot % members]);
                prop_assert!(turns(slot % members, now).current(&rules, (slot + 1) * spacing).is_err());
                times.push(now);
            }
            for (capacity, period) in limits {
                for (at, time) in times.iter().enumerate() {
                    if let Some(later) = times.get(at + usize::try_from(capacity).unwrap()) {
                        prop_assert!(later - time >= period, "{} us apart", later - time);
                    }
                }
            }
        }

        #[test]
        fn next_turn_is_a_turn(
            members in 3_u64..50,
            rank in 0_u64..50,
            now in 0_u64..1_000_000_000_000,
        ) {
            let rules = [rule(2, 2, Duration::from_secs(60))];
            let turns =
                |now| Turns { members, rank: rank % members, last_seen: 0, now, reservation_ttl: 0 };
            if let Err(wait) = turns(now).current(&rules, 0) {
                let wait = u64::try_from(wait.as_micros()).unwrap();
                prop_assert!(turns(now + wait).current(&rules, 0).is_ok());
                prop_assert!(turns(now + wait - 1).current(&rules, 0).is_err());
            }
        }
    }
}
