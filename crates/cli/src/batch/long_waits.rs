use std::collections::HashMap;
use std::time::Duration;

use compact_str::CompactString;

use crate::terminal::{Span, rfc3339, whole};
use tollgate::Timestamp;
use tollgate::engine::Wait;
use tollgate::limiter::{KeyStats, Limiter};
use tollgate::quota::{Cost, Dimension, Window};

/// Finds the waits for limits that are worth a notice, and those that are too long for the job.
#[derive(Debug)]
pub(super) struct LongWaits {
    /// Whether other machines take of the same limits: when they give some back, nobody here knows.
    shared: bool,
    /// How long a job waits for its limits at most.
    longest: Option<Duration>,
    /// Until when that of a key is told.
    told: HashMap<CompactString, Timestamp>,
}

/// What a look has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// What is to be told now that wasn't yet.
    pub(super) notices: Vec<String>,
    /// Why the job ends: all that waits would have to wait too long.
    pub(super) too_long: Option<String>,
}

impl LongWaits {
    pub(super) fn new(shared: bool, longest: Option<Duration>) -> Self {
        Self { shared, longest, told: HashMap::new() }
    }

    /// Looks at the keys that requests wait for. `twin` makes a limiter with the same quotas.
    pub(super) fn look(&mut self, limiter: &Limiter, twin: impl Fn() -> Option<Limiter>) -> Found {
        let now = limiter.now();
        let keys: Vec<_> =
            limiter.state().stats().into_iter().filter(|(_, stats)| stats.waiting > 0).collect();
        let is_told = |key: &CompactString| self.told.get(key).is_some_and(|until| *until > now);
        let is_news = |(key, stats): &(CompactString, KeyStats)| {
            !is_told(key) && (used_up(stats).is_some() || cooling(stats, now).is_some())
        };
        let is_needed = self.longest.is_some() && !keys.is_empty() || keys.iter().any(is_news);
        let Some(twin) = is_needed.then(twin).flatten() else { return Found::default() };
        twin.quotas().restore(&limiter.quotas().list());
        twin.state().absorb(&limiter.state().snapshot());
        let too_long = self.longest.and_then(|longest| too_long(&keys, &twin, longest));
        let news = keys.into_iter().filter(is_news).collect::<Vec<_>>();
        let tell = |(key, stats)| self.tell(&key, &stats, &twin);
        Found { notices: news.into_iter().filter_map(tell).collect(), too_long }
    }

    fn tell(&mut self, key: &CompactString, stats: &KeyStats, twin: &Limiter) -> Option<String> {
        let now = twin.now();
        if let Some(until) = cooling(stats, now) {
            self.told.insert(key.clone(), until);
            let span = Span::between(now, until)?;
            let at = rfc3339(until);
            return Some(format!("{key}: the provider asks to wait; resuming in {span}, at {at}"));
        }
        let limit = &stats.limits[used_up(stats)?];
        let (used, most) = (whole(limit.used), whole(limit.limit));
        let (dimension, hours) =
            (&limit.dimension, limit.window.as_duration().as_secs().div_ceil(3_600));
        let what = format!("{key}: {used} of {most} {dimension} in {hours} h used");
        if self.shared {
            self.told.insert(key.clone(), now + AGAIN);
            return Some(format!(
                "{what} by all machines that share the limit; resuming as it refills"
            ));
        }
        let until = next(key, twin)?;
        let span = Span::between(now, until)?;
        self.told.insert(key.clone(), until);
        Some(format!("{what}; resuming in {span}, at {}", rfc3339(until)))
    }
}

/// When the first request that waits for the key is let in, if it is a small one.
fn next(key: &str, twin: &Limiter) -> Option<Timestamp> {
    // Nobody waits for the twin: it says when the first is let in who waits here.
    let least = Cost::new().tokens(1).input_tokens(1).output_tokens(1);
    match twin.decide(key, &least).wait {
        Some(Wait::At(until)) => Some(until),
        _ => None,
    }
}

/// Why a job ends whose requests all have to wait for more than `longest`.
fn too_long(
    keys: &[(CompactString, KeyStats)],
    twin: &Limiter,
    longest: Duration,
) -> Option<String> {
    let now = twin.now();
    let waits = keys.iter().map(|(key, _)| (next(key, twin).unwrap_or(now), key));
    let (until, key) = waits.min()?;
    let wait = Span::between(now, until)?;
    if until - now <= longest {
        return None;
    }
    let (most, at) = (Span::of(longest), rfc3339(until));
    Some(format!(
        "{key}: the next request would wait {wait} for its limit, longer than --max-wait ({most}); \
         results so far are saved: run the same command again at {at}"
    ))
}

/// Until when the provider has asked to wait, if that is long.
fn cooling(stats: &KeyStats, now: Timestamp) -> Option<Timestamp> {
    stats.cooling_until.filter(|until| *until - now >= LONG)
}

/// The limit of an hour or longer that nothing is left of, if there is one.
fn used_up(stats: &KeyStats) -> Option<usize> {
    stats.limits.iter().position(|limit| {
        let is_long = limit.window >= Window::HOUR && limit.dimension != Dimension::Concurrency;
        is_long && limit.available == 0
    })
}

/// From when on a wait that the provider asks for is worth a notice.
const LONG: Duration = Duration::from_secs(10);
/// When a limit that is shared is worth another word.
const AGAIN: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::limiter::{ManualClock, RateLimited};
    use tollgate::quota::{Algorithm, Quota};

    fn limiter(clock: &ManualClock) -> Limiter {
        let quota = Quota::new().rpm(100).rpd(3).with_algorithm(Algorithm::FixedWindow);
        Limiter::builder().quota("m", quota).clock(clock.clone()).build().expect("a limiter")
    }

    #[tokio::test]
    async fn a_day_that_is_used_up_is_told_once_with_the_time_it_ends() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(false, None));
        let twin = || Some(self::limiter(&clock));
        for _ in 0..3 {
            drop(limiter.try_acquire("m", &Cost::new()).expect("it fits"));
        }
        assert_eq!(waits.look(&limiter, twin), Found::default(), "nobody waits");
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let told = waits.look(&limiter, twin).notices;
        assert_eq!(told.len(), 1, "{told:?}");
        let begin = "m: 3 of 3 requests in 24 h used; resuming in 1d";
        assert!(
            told[0].starts_with(begin) && told[0].contains(", at 2026-01-02T00:00:"),
            "{told:?}"
        );
        assert_eq!(waits.look(&limiter, twin), Found::default(), "told already");
    }

    #[tokio::test]
    async fn a_minute_and_a_cool_down_are_not_worth_a_word() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(false, None));
        limiter.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_secs(5))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        assert_eq!(waits.look(&limiter, || Some(self::limiter(&clock))), Found::default());
    }

    #[tokio::test]
    async fn long_retry_after_is_told_once() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(false, None));
        let twin = || Some(self::limiter(&clock));
        limiter.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_secs(90))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let told = waits.look(&limiter, twin).notices;
        assert_eq!(told.len(), 1, "{told:?}");
        let begin = "m: the provider asks to wait; resuming in 1m 3";
        assert!(told[0].starts_with(begin), "{told:?}");
        clock.advance(Duration::from_secs(30));
        assert_eq!(waits.look(&limiter, twin), Found::default(), "told already");
    }

    #[tokio::test]
    async fn wait_that_is_longer_than_the_longest_of_every_key_ends_the_job() {
        let clock = ManualClock::new();
        let limiter = limiter(&clock);
        let twin = || Some(self::limiter(&clock));
        let found = |longest| {
            LongWaits::new(false, Some(Duration::from_secs(longest))).look(&limiter, twin).too_long
        };
        assert_eq!(found(0), None, "nobody waits");
        limiter.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_secs(90))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        // The limiter adds a little to what the provider asks for.
        assert_eq!(found(95), None);
        let why = found(89).expect("it is too long");
        assert!(why.starts_with("m: the next request would wait 1m 3"), "{why}");
        assert!(why.contains("longer than --max-wait (1m 29s)"), "{why}");
        limiter.quotas().set("n", &Quota::new().rpm(1));
        drop(limiter.try_acquire("n", &Cost::new()).expect("it fits"));
        let mut other = std::pin::pin!(limiter.acquire("n", &Cost::new()).into_future());
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        assert_eq!(found(89), None, "another goes on before");
    }
}
