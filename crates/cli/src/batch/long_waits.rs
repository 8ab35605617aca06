use std::collections::HashMap;
use std::time::Duration;

use paceline::Key;

use crate::terminal::{HumanDuration, amount, rfc3339};
use paceline::Timestamp;
use paceline::limiter::{KeyStats, LimitStats};
use paceline::quota::{Dimension, Window};

/// Detects long waits for limits, to report them or to end the job.
#[derive(Debug)]
pub(super) struct LongWaits {
    /// The longest wait of the job.
    longest: Option<Duration>,
    /// The time until which the wait of a key has been reported.
    reported: HashMap<Key, Timestamp>,
    /// The time since which it is unknown when an exhausted key resumes.
    unknown_since: HashMap<Key, Timestamp>,
    /// The time since which all lines of the job wait.
    idle_since: Option<Timestamp>,
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
    pub(super) fn new(longest: Option<Duration>) -> Self {
        Self { longest, reported: HashMap::new(), unknown_since: HashMap::new(), idle_since: None }
    }

    /// Checks the keys with queued requests, of a job that has started so many lines which haven't ended. The last line
    /// was answered at `answered_at`.
    pub(super) fn check(
        &mut self,
        keys: &[(Key, KeyStats)],
        lines: usize,
        answered_at: Timestamp,
        now: Timestamp,
    ) -> WaitCheck {
        let waiting = || keys.iter().filter(|(_, stats)| stats.waiting > 0);
        let are_all_waiting = waiting().map(|(_, stats)| stats.waiting).sum::<usize>() >= lines;
        self.idle_since = are_all_waiting.then(|| self.idle_since.unwrap_or(now));
        let idle_since = self.idle_since.unwrap_or(now).max(answered_at);
        let too_long =
            self.longest.and_then(|longest| too_long(waiting(), longest, idle_since, now));
        let notices = waiting().filter_map(|(key, stats)| {
            let is_reported = self.reported.get(key).is_some_and(|until| *until > now);
            if is_reported { None } else { self.notice(key, stats, now) }
        });
        WaitCheck { notices: notices.collect(), too_long }
    }

    fn notice(&mut self, key: &Key, stats: &KeyStats, now: Timestamp) -> Option<String> {
        let unknown_since = self.unknown_since.remove(key);
        if let Some(until) = cooldown_end(stats, now) {
            self.reported.insert(key.clone(), until);
            let span = HumanDuration::between(now, until)?;
            let at = rfc3339(until);
            let reason = stats.cooling_kind.map(|kind| format!(" ({})", kind.describe()));
            let reason = reason.unwrap_or_default();
            return Some(format!(
                "{key}: the provider asks to wait{reason}; resuming in {span}, at {at}"
            ));
        }
        let limit = exhausted_limit(stats, now)?;
        let amount = |number: u64| amount(limit.dimension.as_str(), number);
        let (used, most) = (amount(limit.used), amount(limit.limit));
        let (dimension, hours) =
            (&limit.dimension, limit.window.as_duration().as_secs().div_ceil(3_600));
        let usage = format!("{key}: {used} of {most} {dimension} in {hours} h used");
        let Some(until) = stats.next_at else {
            // The time is also unknown until the first request is checked.
            let since = unknown_since.unwrap_or(now);
            self.unknown_since.insert(key.clone(), since);
            if now.saturating_duration_since(since) < LONG {
                return None;
            }
            // A request of another process that shares the limit is the first.
            self.reported.insert(key.clone(), now + AGAIN);
            return Some(format!("{usage}; resuming as it refills"));
        };
        let span = HumanDuration::between(now, until)?;
        self.reported.insert(key.clone(), until);
        Some(format!("{usage}; resuming in {span}, at {}", rfc3339(until)))
    }
}

/// Returns the time at which the first queued request of a key fits, if no request in flight may return some of what it
/// holds and so let it fit earlier.
fn next_admission(stats: &KeyStats) -> Option<Timestamp> {
    let holds = |limit: &LimitStats| limit.held > 0 && limit.dimension != Dimension::Concurrency;
    stats.next_at.filter(|_| !stats.limits.iter().any(holds))
}

/// Returns the reason to end a job whose requests would all wait for more than `longest`. A wait for what others hold
/// counts from `idle_since`, since when no request of the job is in flight.
fn too_long<'a>(
    keys: impl Iterator<Item = &'a (Key, KeyStats)>,
    longest: Duration,
    idle_since: Timestamp,
    now: Timestamp,
) -> Option<String> {
    // `Outages` bounds those for the server.
    let limited = keys.filter(|(_, stats)| stats.outage.is_none());
    let waits = limited.map(|(key, stats)| match next_admission(stats) {
        Some(until) => (until.saturating_duration_since(now), Some(until), key),
        None => (now.saturating_duration_since(idle_since), None, key),
    });
    let (wait, until, key) = waits.min()?;
    if wait <= longest {
        return None;
    }
    let (wait, most) = (HumanDuration::of(wait), HumanDuration::of(longest));
    let then = "results so far are saved: run the same command again";
    Some(match until {
        Some(until) => format!(
            "{key}: the next request would wait {wait} for its limit, longer than --max-wait ({most}); {then} at {}",
            rfc3339(until)
        ),
        None => format!(
            "{key}: no request was admitted for {wait}, longer than --max-wait ({most}), since other programs hold \
             its limit, or the store is unavailable; {then}"
        ),
    })
}

/// Returns the end of a long cool-down requested by the provider.
fn cooldown_end(stats: &KeyStats, now: Timestamp) -> Option<Timestamp> {
    stats.cooling_until.filter(|until| *until - now >= LONG)
}

/// Returns a limit with a window of an hour or longer that is exhausted, or has less left than the first queued request
/// needs: that request waits long although no limit is exhausted, for the one of which the smallest part is left.
fn exhausted_limit(stats: &KeyStats, now: Timestamp) -> Option<&LimitStats> {
    let is_long = |limit: &&LimitStats| {
        let has_reset = !limit.window.is_endless() && limit.dimension != Dimension::Concurrency;
        limit.window >= Window::HOUR && has_reset
    };
    let left = |limit: &&LimitStats| {
        u128::from(limit.available) * 1_000_000 / u128::from(limit.limit.max(1))
    };
    let waits_long = stats.next_at.is_some_and(|until| until - now >= LONG_FOR_LIMIT);
    let limits = stats.limits.iter().filter(is_long);
    limits.min_by_key(left).filter(|limit| limit.available == 0 || waits_long)
}

/// The shortest cool-down, and the shortest wait whose end is unknown, that are reported.
const LONG: Duration = Duration::from_secs(10);
/// The shortest wait for a limit that isn't exhausted that is reported.
const LONG_FOR_LIMIT: Duration = Duration::from_secs(60);
/// The interval of notices for a limit that resumes at an unknown time.
const AGAIN: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::limiter::{Limiter, ManualClock, RateLimited};
    use paceline::quota::{Algorithm, Cost, Quota, Usd};

    fn limiter(clock: &ManualClock) -> Limiter {
        let quota = Quota::new().rpm(100).rpd(3).with_algorithm(Algorithm::FixedWindow);
        Limiter::builder().quota("m", quota).clock(clock.clone()).build().expect("a limiter")
    }

    fn check(waits: &mut LongWaits, limiter: &Limiter) -> WaitCheck {
        let stats = limiter.state().stats();
        let lines = stats.iter().map(|(_, stats)| stats.waiting).sum();
        waits.check(&stats, lines, Timestamp::UNIX_EPOCH, limiter.now())
    }

    #[tokio::test]
    async fn exhausted_daily_limit_is_reported_once_with_end_time() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(None));
        for _ in 0..3 {
            drop(limiter.try_acquire("m", &Cost::new()).expect("the request fits"));
        }
        assert_eq!(check(&mut waits, &limiter), WaitCheck::default(), "no request is queued");
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let reported = check(&mut waits, &limiter).notices;
        assert_eq!(reported.len(), 1, "{reported:?}");
        let begin = "m: 3 of 3 requests in 24 h used; resuming in 1d";
        assert!(
            reported[0].starts_with(begin) && reported[0].contains(", at 2026-01-02T00:00:"),
            "{reported:?}"
        );
        assert_eq!(check(&mut waits, &limiter), WaitCheck::default(), "reported already");
    }

    #[tokio::test]
    async fn unknown_end_is_reported_once_it_stays_unknown() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(None));
        for _ in 0..3 {
            drop(limiter.try_acquire("m", &Cost::new()).expect("the request fits"));
        }
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let known = limiter.state().stats();
        let mut unknown = known.clone();
        unknown[0].1.next_at = None;
        let mut check = |stats| waits.check(stats, 1, limiter.now(), limiter.now()).notices;
        assert!(check(&unknown).is_empty(), "the request is not checked yet");
        let reported = check(&known);
        assert!(reported[0].contains("resuming in 1d"), "{reported:?}");

        let mut waits = LongWaits::new(None);
        let begin = limiter.now();
        let mut check = || waits.check(&unknown, 1, begin, limiter.now()).notices;
        assert!(check().is_empty());
        clock.advance(LONG);
        let reported = check();
        assert!(reported[0].ends_with("resuming as it refills"), "{reported:?}");
        assert!(check().is_empty(), "reported already");
    }

    #[tokio::test]
    async fn short_waits_are_not_reported() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(None));
        limiter.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_secs(5))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        assert_eq!(check(&mut waits, &limiter), WaitCheck::default());
    }

    #[tokio::test]
    async fn long_retry_after_is_reported_once() {
        let clock = ManualClock::new();
        let (limiter, mut waits) = (limiter(&clock), LongWaits::new(None));
        limiter.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_secs(90))));
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let reported = check(&mut waits, &limiter).notices;
        assert_eq!(reported.len(), 1, "{reported:?}");
        let begin =
            "m: the provider asks to wait (too many requests or tokens at once); resuming in 1m 3";
        assert!(reported[0].starts_with(begin), "{reported:?}");
        clock.advance(Duration::from_secs(30));
        assert_eq!(check(&mut waits, &limiter), WaitCheck::default(), "reported already");
    }

    #[tokio::test]
    async fn wait_above_maximum_for_every_key_ends_job() {
        let clock = ManualClock::new();
        let limiter = limiter(&clock);
        let found = |longest| {
            let mut waits = LongWaits::new(Some(Duration::from_secs(longest)));
            check(&mut waits, &limiter).too_long
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

    #[tokio::test]
    async fn wait_for_the_server_does_not_end_job() {
        let clock = ManualClock::new();
        let limiter = limiter(&clock);
        let mut waits = LongWaits::new(Some(Duration::ZERO));
        for _ in 0..5 {
            limiter.feedback().rate_limited("m", &RateLimited::default().overloaded());
        }
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        assert!(limiter.stats("m").next_at.is_some());
        assert_eq!(check(&mut waits, &limiter), WaitCheck::default());
    }

    #[tokio::test]
    async fn wait_for_what_others_hold_ends_job_of_which_nothing_is_in_flight() {
        let clock = ManualClock::new();
        let limiter = Limiter::builder().quota("m", Quota::new().concurrency(1));
        let limiter = limiter.clock(clock.clone()).build().expect("a limiter");
        let _other = limiter.try_acquire("m", &Cost::new()).expect("it is free");
        let mut waiter = std::pin::pin!(limiter.acquire("m", &Cost::new()).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let mut waits = LongWaits::new(Some(Duration::from_secs(60)));
        let begin = limiter.now();
        let mut found = |lines, answered_at| {
            clock.advance(Duration::from_secs(40));
            waits.check(&limiter.state().stats(), lines, answered_at, limiter.now()).too_long
        };
        // Another line of the job is in flight.
        assert_eq!([2, 2, 2].map(|lines| found(lines, begin)), [None, None, None]);
        let answered_at = begin + Duration::from_secs(160);
        assert_eq!([answered_at; 2].map(|at| found(1, at)), [None, None]);
        let why = found(1, answered_at).expect("the wait is too long");
        assert!(why.starts_with("m: no request was admitted for 1m 20s"), "{why}");
    }

    #[tokio::test]
    async fn wait_for_a_budget_ends_job_once_nothing_is_in_flight() {
        let clock = ManualClock::new();
        let usd = |micros| Cost::new().usd(Usd::from_micros(micros));
        let quota = Quota::new().usd_per_day(Usd::from_micros(1_000));
        let limiter = Limiter::builder().quota("m", quota).clock(clock.clone()).build();
        let limiter = limiter.expect("a limiter");
        // A day is closed for a moment around its start.
        clock.advance(Duration::from_secs(1));
        let in_flight = limiter.try_acquire("m", &usd(900)).expect("the request fits");
        let mut waiter = std::pin::pin!(limiter.acquire("m", &usd(200)).into_future());
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        let mut waits = LongWaits::new(Some(Duration::from_secs(60)));
        assert_eq!(
            check(&mut waits, &limiter).too_long,
            None,
            "the request in flight may cost less"
        );
        in_flight.settle(&usd(900));
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        // 100 micro-dollars are left, less than the request needs.
        let WaitCheck { notices, too_long } = check(&mut waits, &limiter);
        let why = too_long.expect("the wait is too long");
        assert!(why.starts_with("m: the next request would wait 1d"), "{why}");
        assert!(notices[0].starts_with("m: $0.0009 of $0.001 usd in 24 h used"), "{notices:?}");
    }
}
