//! Outages of the server, during which the limiter sends one request at a time.

use std::collections::HashMap;
use std::time::Duration;

use http::StatusCode;

use super::long_waits::WaitCheck;
use super::target::Base;
use crate::terminal::HumanDuration;
use paceline::limiter::{KeyStats, Outage};
use paceline::{Key, Timestamp};

/// Reports the outages of models, and ends a job whose requests have all waited too long for the server.
#[derive(Debug)]
pub(super) struct Outages {
    base: Base,
    give_up_after: Duration,
    /// The start of each outage that was reported and hasn't ended.
    reported: HashMap<Key, Timestamp>,
}

impl Outages {
    pub(super) fn new(base: Base, give_up_after: Duration) -> Self {
        Self { base, give_up_after, reported: HashMap::new() }
    }

    /// Checks all keys. The last line was answered at `answered_at`.
    pub(super) fn check(
        &mut self,
        keys: &[(Key, KeyStats)],
        answered_at: Timestamp,
        now: Timestamp,
    ) -> WaitCheck {
        let notices = self.notices(keys, now);
        WaitCheck { notices, too_long: self.give_up(keys, answered_at, now) }
    }

    /// Returns a notice for each outage that has started or ended since the last call.
    pub(super) fn notices(&mut self, keys: &[(Key, KeyStats)], now: Timestamp) -> Vec<String> {
        keys.iter().filter_map(|(key, stats)| self.notice(key, stats, now)).collect()
    }

    fn notice(&mut self, key: &Key, stats: &KeyStats, now: Timestamp) -> Option<String> {
        match &stats.outage {
            Some(outage) if self.reported.insert(key.clone(), outage.since).is_none() => {
                let (base, cause) = (&self.base, cause(outage));
                Some(format!(
                    "paused: 5 consecutive requests for {key} to {base} failed ({cause}); testing with \
                     one request at a time until the server responds"
                ))
            }
            Some(_) => None,
            None => {
                let since = self.reported.remove(key)?;
                let span = HumanDuration::of(now - since);
                Some(format!(
                    "resumed: the server responds again after {span} to requests for {key}"
                ))
            }
        }
    }

    /// Returns the reason to end the job if each model with waiting requests has an outage, and no line was answered
    /// during the longest one that is waited for.
    fn give_up(
        &self,
        keys: &[(Key, KeyStats)],
        answered_at: Timestamp,
        now: Timestamp,
    ) -> Option<String> {
        let is_open = |stats: &KeyStats| stats.waiting > 0 || stats.outage.is_some();
        let open = keys.iter().filter(|(_, stats)| is_open(stats));
        let outages = open.map(|(_, stats)| stats.outage.as_ref()).collect::<Option<Vec<_>>>()?;
        let latest = outages.into_iter().max_by_key(|outage| outage.since)?;
        let since = latest.since.max(answered_at);
        (now - since >= self.give_up_after).then(|| {
            let (span, cause) = (HumanDuration::of(now - since), cause(latest));
            format!(
                "gave up: the server has not responded for {span} ({cause}); results so far are saved: run \
                 the same command again to continue, or raise --give-up-after"
            )
        })
    }
}

/// Returns the last failure in words. The provider's own may hold parts of the request.
fn cause(outage: &Outage) -> String {
    match outage.status.and_then(|status| StatusCode::from_u16(status).ok()) {
        Some(status) => format!("HTTP {status}"),
        None => outage.text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::limiter::{Limiter, ManualClock, RateLimited};
    use paceline::quota::{Cost, Quota};

    fn outages() -> Outages {
        let base = "http://127.0.0.1:1".parse().expect("a base URL");
        Outages::new(base, Duration::from_secs(60))
    }

    fn check(outages: &mut Outages, limiter: &Limiter, answered_at: Timestamp) -> WaitCheck {
        outages.check(&limiter.state().stats(), answered_at, limiter.now())
    }

    fn fail(limiter: &Limiter, key: &str, times: u32) {
        for _ in 0..times {
            limiter.feedback().rate_limited(key, &RateLimited::default().overloaded());
        }
    }

    fn limiter(clock: &ManualClock) -> Limiter {
        let builder = Limiter::builder().quota("*", Quota::new().rpm(100));
        builder.clock(clock.clone()).build().expect("a limiter")
    }

    #[test]
    fn outage_is_reported_at_its_start_and_its_end() {
        let clock = ManualClock::new();
        let (limiter, mut outages) = (limiter(&clock), outages());
        fail(&limiter, "m", 4);
        assert_eq!(check(&mut outages, &limiter, Timestamp::UNIX_EPOCH), WaitCheck::default());
        fail(&limiter, "m", 1);
        let started = check(&mut outages, &limiter, Timestamp::UNIX_EPOCH).notices;
        let begin = "paused: 5 consecutive requests for m to http://127.0.0.1:1 failed";
        assert!(started.len() == 1 && started[0].starts_with(begin), "{started:?}");
        assert_eq!(
            check(&mut outages, &limiter, Timestamp::UNIX_EPOCH),
            WaitCheck::default(),
            "reported already"
        );
        clock.advance(Duration::from_secs(31));
        // The test of the server.
        limiter.try_acquire("m", &Cost::new()).expect("the request fits").settle(&Cost::new());
        let ended = check(&mut outages, &limiter, Timestamp::UNIX_EPOCH).notices;
        assert_eq!(ended, ["resumed: the server responds again after 31s to requests for m"]);
    }

    #[tokio::test]
    async fn outage_of_all_models_with_requests_ends_job() {
        let clock = ManualClock::new();
        let (limiter, mut outages) = (limiter(&clock), outages());
        fail(&limiter, "m", 5);
        clock.advance(Duration::from_secs(59));
        assert_eq!(check(&mut outages, &limiter, Timestamp::UNIX_EPOCH).too_long, None);
        clock.advance(Duration::from_secs(1));
        // Lines of other models are answered, which don't wait.
        assert_eq!(check(&mut outages, &limiter, limiter.now()).too_long, None);
        let why = check(&mut outages, &limiter, Timestamp::UNIX_EPOCH)
            .too_long
            .expect("the outage is too long");
        assert!(why.starts_with("gave up: the server has not responded for 1m"), "{why}");
        assert!(why.contains("--give-up-after"), "{why}");
        drop(limiter.try_acquire("n", &Cost::new().requests(100)).expect("the request fits"));
        let mut other = std::pin::pin!(limiter.acquire("n", &Cost::new()).into_future());
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        assert_eq!(
            check(&mut outages, &limiter, Timestamp::UNIX_EPOCH).too_long,
            None,
            "requests for n are sent"
        );
    }
}
