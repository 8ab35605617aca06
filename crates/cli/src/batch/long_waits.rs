use std::collections::HashMap;
use std::time::Duration;

use tollgate::Key;

use crate::terminal::{HumanDuration, amount, rfc3339};
use tollgate::Timestamp;
use tollgate::engine::Wait;
use tollgate::limiter::{KeyStats, Limiter};
use tollgate::quota::{Cost, Dimension, Window};

/// Detects long waits for limits, to report them or to end the job.
#[derive(Debug)]
pub(super) struct LongWaits {
    /// True if the limits are shared: the time at which other machines release quota is unknown.
    shared: bool,
    /// The longest wait of the job.
    longest: Option<Duration>,
    /// The time until which the wait of a key has been reported.
    reported: HashMap<Key, Timestamp>,
}

/// The result of a check.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WaitCheck {
    /// Notices that were not reported yet.
    pub(super) notices: Vec<String>,
    /// The reason to end the job: every queued request would wait too long.
    pub(super) too_long: Option<String>,
}

impl LongWaits {
    pub(super) fn new(shared: bool, longest: Option<Duration>) -> Self {
        Self { shared, longest, reported: HashMap::new() }
    }

    /// Checks the keys with queued requests. `replica` builds a limiter with the same quotas.
    pub(super) fn check(
        &mut self,
        limiter: &Limiter,
        replica: impl Fn() -> Option<Limiter>,
    ) -> WaitCheck {
        let now = limiter.now();
        let keys: Vec<_> =
            limiter.state().stats().into_iter().filter(|(_, stats)| stats.waiting > 0).collect();
        let is_reported = |key: &Key| self.reported.get(key).is_some_and(|until| *until > now);
        let is_new = |(key, stats): &(Key, KeyStats)| {
            !is_reported(key)
                && (exhausted_limit(stats).is_some() || cooldown_end(stats, now).is_some())
        };
        let is_needed = self.longest.is_some() && !keys.is_empty() || keys.iter().any(is_new);
        let Some(replica) = is_needed.then(replica).flatten() else { return WaitCheck::default() };
        replica.quotas().restore(&limiter.quotas().list());
        for (model, _) in &keys {
            if let Some(profile) = replica.quotas().profile_of(model) {
                replica.state().count_as_model(model, profile);
            }
        }
        replica.state().absorb(&limiter.state().snapshot());
        let too_long = self.longest.and_then(|longest| too_long(&keys, &replica, longest));
        let new = keys.into_iter().filter(is_new).collect::<Vec<_>>();
        let notice = |(key, stats)| self.notice(&key, &stats, &replica);
        WaitCheck { notices: new.into_iter().filter_map(notice).collect(), too_long }
    }

    fn notice(&mut self, key: &Key, stats: &KeyStats, replica: &Limiter) -> Option<String> {
        let now = replica.now();
        if let Some(until) = cooldown_end(stats, now) {
            self.reported.insert(key.clone(), until);
            let span = HumanDuration::between(now, until)?;
            let at = rfc3339(until);
            return Some(format!("{key}: the provider asks to wait; resuming in {span}, at {at}"));
        }
        let limit = &stats.limits[exhausted_limit(stats)?];
        let amount = |number: u64| amount(limit.dimension.as_str(), number);
        let (used, most) = (amount(limit.used), amount(limit.limit));
        let (dimension, hours) =
            (&limit.dimension, limit.window.as_duration().as_secs().div_ceil(3_600));
        let usage = format!("{key}: {used} of {most} {dimension} in {hours} h used");
        if self.shared {
            self.reported.insert(key.clone(), now + AGAIN);
            return Some(format!(
                "{usage} by all machines that share the limit; resuming as it refills"
            ));
        }
        let until = next_admission(key, replica)?;
        let span = HumanDuration::between(now, until)?;
        self.reported.insert(key.clone(), until);
        Some(format!("{usage}; resuming in {span}, at {}", rfc3339(until)))
    }
}

/// Returns the admission time of the first queued request of the key, if it is small.
fn next_admission(key: &str, replica: &Limiter) -> Option<Timestamp> {
    // The replica has no queue, so its decision applies to the first queued request.
    let least = Cost::new().tokens(1).input_tokens(1).output_tokens(1);
    match replica.decide(key, &least).wait {
        Some(Wait::At(until)) => Some(until),
        _ => None,
    }
}

/// Returns the reason to end a job whose requests would all wait for more than `longest`.
fn too_long(keys: &[(Key, KeyStats)], replica: &Limiter, longest: Duration) -> Option<String> {
    let now = replica.now();
    let waits = keys.iter().map(|(key, _)| (next_admission(key, replica).unwrap_or(now), key));
    let (until, key) = waits.min()?;
    let wait = HumanDuration::between(now, until)?;
    if until - now <= longest {
        return None;
    }
    let (most, at) = (HumanDuration::of(longest), rfc3339(until));
    Some(format!(
        "{key}: the next request would wait {wait} for its limit, longer than --max-wait ({most}); \
         results so far are saved: run the same command again at {at}"
    ))
}

/// Returns the end of a long cool-down requested by the provider.
fn cooldown_end(stats: &KeyStats, now: Timestamp) -> Option<Timestamp> {
    stats.cooling_until.filter(|until| *until - now >= LONG)
}

/// Returns the index of an exhausted limit with a window of an hour or longer.
fn exhausted_limit(stats: &KeyStats) -> Option<usize> {
    stats.limits.iter().position(|limit| {
        let is_long = limit.window >= Window::HOUR && limit.dimension != Dimension::Concurrency;
        is_long && !limit.window.is_endless() && limit.available == 0
    })
}

/// The shortest cool-down that is reported.
const LONG: Duration = Duration::from_secs(10);
/// The interval of notices for a shared limit.
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
    async fn exhausted_daily_limit_is_reported_once_with_end_time() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(false, None));
        let replica = || Some(self::limiter(&clock));
        for _ in 0..3 {
            drop(limiter.try_acquire("m", &Cost::new()).expect("the request fits"));
        }
        assert_eq!(waits.check(&limiter, replica), WaitCheck::default(), "no request is queued");
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let reported = waits.check(&limiter, replica).notices;
        assert_eq!(reported.len(), 1, "{reported:?}");
        let begin = "m: 3 of 3 requests in 24 h used; resuming in 1d";
        assert!(
            reported[0].starts_with(begin) && reported[0].contains(", at 2026-01-02T00:00:"),
            "{reported:?}"
        );
        assert_eq!(waits.check(&limiter, replica), WaitCheck::default(), "reported already");
    }

    #[tokio::test]
    async fn short_waits_are_not_reported() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(false, None));
        limiter.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_secs(5))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        assert_eq!(waits.check(&limiter, || Some(self::limiter(&clock))), WaitCheck::default());
    }

    #[tokio::test]
    async fn long_retry_after_is_reported_once() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(false, None));
        let replica = || Some(self::limiter(&clock));
        limiter.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_secs(90))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let reported = waits.check(&limiter, replica).notices;
        assert_eq!(reported.len(), 1, "{reported:?}");
        let begin = "m: the provider asks to wait; resuming in 1m 3";
        assert!(reported[0].starts_with(begin), "{reported:?}");
        clock.advance(Duration::from_secs(30));
        assert_eq!(waits.check(&limiter, replica), WaitCheck::default(), "reported already");
    }

    #[tokio::test]
    async fn wait_above_maximum_for_every_key_ends_job() {
        let clock = ManualClock::new();
        let limiter = limiter(&clock);
        let replica = || Some(self::limiter(&clock));
        let found = |longest| {
            LongWaits::new(false, Some(Duration::from_secs(longest)))
                .check(&limiter, replica)
                .too_long
        };
        assert_eq!(found(0), None, "no request is queued");
        limiter.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_secs(90))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        // The limiter waits a little longer than the provider requests.
        assert_eq!(found(95), None);
        let why = found(89).expect("the wait is too long");
        assert!(why.starts_with("m: the next request would wait 1m 3"), "{why}");
        assert!(why.contains("longer than --max-wait (1m 29s)"), "{why}");
        limiter.quotas().set("n", &Quota::new().rpm(1)).unwrap();
        drop(limiter.try_acquire("n", &Cost::new()).expect("the request fits"));
        let mut other = std::pin::pin!(limiter.acquire("n", &Cost::new()).into_future());
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        assert_eq!(found(89), None, "`n` is admitted earlier");
    }
}
