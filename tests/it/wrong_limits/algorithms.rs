//! Limits of providers that aren't named: their headers show whether they are buckets or windows.

use std::time::Duration;

use paceline::Quota;
use paceline::limiter::{Limiter, TokioClock, UnknownKey};
use paceline::provider::COMPATIBLE;
use paceline::quota::Algorithm;

use super::provider::{Counting, Headers, Settings};
use super::{Job, Outcome, client};

/// Sends requests to a provider of which nothing is known. Returns the result, with the quota that was learned.
async fn run_untold(settings: Settings, requests: usize) -> (Outcome, Quota) {
    let builder = Limiter::builder().clock(TokioClock::new()).provider(COMPATIBLE);
    let limiter = builder.unknown_key(UnknownKey::Learn).build().unwrap();
    let outcome = Job::plain(requests).run(client(&limiter, settings), settings).await;
    (outcome, limiter.quotas().get("m").unwrap().quota)
}

fn algorithms(quota: &Quota) -> Vec<Option<Algorithm>> {
    quota.limits().iter().map(|limit| limit.algorithm()).collect()
}

#[tokio::test(start_paused = true)]
async fn bucket_of_unnamed_provider_is_used() {
    for headers in [Headers::PerMinute, Headers::WithReset] {
        for burst in [1.0, 10.0, 60.0] {
            let settings = Settings { headers, burst, ..Settings::default() };
            let (outcome, quota) = run_untold(settings, 1_800).await;
            assert_eq!(algorithms(&quota), [Some(Algorithm::TokenBucket)], "{settings:?}");
            let Outcome { answered, refused, used } = outcome;
            assert_eq!((answered, refused <= 30), (1_800, true), "{settings:?}: {outcome:?}");
            assert!(used >= 0.9, "{settings:?}: {outcome:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn windows_of_unnamed_provider_are_kept() {
    for headers in [Headers::PerMinute, Headers::WithReset] {
        for counting in [Counting::Fixed(60.0), Counting::Sliding(60.0)] {
            let settings = Settings { headers, counting, ..Settings::default() };
            let (outcome, quota) = run_untold(settings, 3_000).await;
            assert_eq!(algorithms(&quota), [None], "{settings:?}");
            let Outcome { answered, refused, used } = outcome;
            assert_eq!((answered, refused), (3_000, 0), "{settings:?}: {outcome:?}");
            assert!(used >= 0.8, "{settings:?}: {outcome:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn window_mistaken_for_bucket_costs_few_refusals() {
    let settings = Settings {
        counting: Counting::Sliding(60.0),
        latency: Duration::from_secs(1),
        ..Settings::default()
    };
    let builder = Limiter::builder().clock(TokioClock::new()).provider(COMPATIBLE);
    let limit = Quota::new().rpm(1_200).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder.quota("m", limit).build().unwrap();
    let outcome = Job::plain(3_000).run(client(&limiter, settings), settings).await;
    let Outcome { answered, refused, used } = outcome;
    assert!(answered == 3_000 && refused <= 90 && used >= 0.8, "{outcome:?}");
}
