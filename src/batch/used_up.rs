use std::collections::HashMap;

use compact_str::CompactString;

use crate::engine::Wait;
use crate::limiter::{KeyStats, Limiter};
use crate::quota::{Cost, Dimension, Window};
use crate::terminal::{Span, rfc3339, whole};

/// Tells of limits that hold a run up for long: who sees nothing happen is to know why, and how long.
#[derive(Debug)]
pub(super) struct UsedUp {
    /// Whether other machines take of the same limits: when they give some back, nobody here knows.
    shared: bool,
    /// Until when that of a key is told.
    told: HashMap<CompactString, u64>,
}

impl UsedUp {
    pub(super) fn new(shared: bool) -> Self {
        Self { shared, told: HashMap::new() }
    }

    /// What is to be told now that wasn't yet. `twin` makes a limiter with the same quotas.
    pub(super) fn look(
        &mut self,
        limiter: &Limiter,
        twin: impl Fn() -> Option<Limiter>,
    ) -> Vec<String> {
        let now = limiter.now();
        let untold = |key: &CompactString| self.told.get(key).is_none_or(|until| *until <= now);
        let held_up = |(key, stats): &(CompactString, KeyStats)| {
            stats.waiting > 0 && untold(key) && used_up(stats).is_some()
        };
        let keys: Vec<_> = limiter.iter().filter(held_up).collect();
        let Some(twin) = (!keys.is_empty()).then(twin).flatten() else { return Vec::new() };
        twin.restore_quotas(&limiter.quotas());
        twin.absorb(&limiter.snapshot());
        keys.into_iter().filter_map(|(key, stats)| self.tell(&key, &stats, &twin)).collect()
    }

    fn tell(&mut self, key: &CompactString, stats: &KeyStats, twin: &Limiter) -> Option<String> {
        // Nobody waits for the twin: it says when the first is let in who waits here.
        let least = Cost::new().tokens(1).input_tokens(1).output_tokens(1);
        let decision = twin.decide(key, &least);
        let limit = &stats.limits[used_up(stats)?];
        let (used, most) = (whole(limit.used), whole(limit.limit));
        let (dimension, hours) =
            (&limit.dimension, limit.window.as_duration().as_secs().div_ceil(3_600));
        let what = format!("{key}: {used} of {most} {dimension} in {hours} h are used");
        if self.shared {
            self.told.insert(key.clone(), decision.asked_at.saturating_add(AGAIN));
            return Some(format!("{what}, by all who share it; it goes on as that comes back"));
        }
        let Some(Wait::At(until)) = decision.wait else { return None };
        let span = Span::between(decision.asked_at, until)?;
        self.told.insert(key.clone(), until);
        Some(format!("{what}; it goes on in {span}, at {}", rfc3339(until)))
    }
}

/// The limit of an hour or longer that nothing is left of, if there is one.
fn used_up(stats: &KeyStats) -> Option<usize> {
    stats.limits.iter().position(|limit| {
        let is_long = limit.window >= Window::HOUR && limit.dimension != Dimension::Concurrency;
        is_long && limit.available == 0
    })
}

/// When a limit that is shared is worth another word, in nanoseconds.
const AGAIN: u64 = 3_600 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limiter::{ManualClock, RateLimited};
    use crate::quota::{Algorithm, Quota};

    fn limiter(clock: &ManualClock) -> Limiter {
        let quota = Quota::new().rpm(100).rpd(3).with_algorithm(Algorithm::FixedWindow);
        Limiter::builder().quota("m", quota).clock(clock.clone()).build().expect("a limiter")
    }

    #[tokio::test]
    async fn a_day_that_is_used_up_is_told_once_with_the_time_it_ends() {
        let clock = ManualClock::new();
        let (limiter, mut used_up) = (limiter(&clock), UsedUp::new(false));
        let twin = || Some(self::limiter(&clock));
        for _ in 0..3 {
            drop(limiter.try_acquire("m", &Cost::new()).expect("it fits"));
        }
        assert_eq!(used_up.look(&limiter, twin), [""; 0], "nobody waits");
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let told = used_up.look(&limiter, twin);
        assert_eq!(told.len(), 1, "{told:?}");
        let begin = "m: 3 of 3 requests in 24 h are used; it goes on in 1d";
        assert!(
            told[0].starts_with(begin) && told[0].contains(", at 2026-01-02T00:00:"),
            "{told:?}"
        );
        assert_eq!(used_up.look(&limiter, twin), [""; 0], "told already");
    }

    #[tokio::test]
    async fn a_minute_and_a_cool_down_are_not_worth_a_word() {
        let clock = ManualClock::new();
        let (limiter, mut used_up) = (limiter(&clock), UsedUp::new(false));
        limiter.on_rate_limited("m", &RateLimited::new(Some(Duration::from_secs(5))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        assert_eq!(used_up.look(&limiter, || Some(self::limiter(&clock))), [""; 0]);
    }
}
