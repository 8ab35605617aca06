//! A layer whose limiter is kept: its limits hold across a restart.

use std::fs;

use tollgate::Limiter;
use tollgate::middleware::RateLimitLayer;
use tower::{Service, ServiceExt};

use super::inner::Frames;
use super::{USAGE, answering, chat, read};

/// What an unknown server is taken to charge for [`chat`]: its bytes / 4, 2 around it, `max_tokens`.
const CHARGE: u64 = 5 + 2 + 50;

#[tokio::test]
async fn a_daily_limit_that_is_used_up_stays_used_up_and_usage_is_kept() {
    for store in ["yaml: state.yaml", "sqlite: state.db"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tollgate.yaml");
        let quota = "{rpd: 3, tpd: 10000, algorithm: sliding_window}";
        let text = format!("quotas: {{gpt-4o: {quota}}}\nmargin: {{percent: 0, lag: 0s}}\n");
        fs::write(&path, format!("{text}store: {{{store}, flush: 1h}}\n")).unwrap();
        // Each run has a limiter and a layer of its own, and ends without a word.
        for (run, let_in) in [3, 0, 0].into_iter().enumerate() {
            let limiter = Limiter::from_config(&path).unwrap();
            let layer = RateLimitLayer::new(limiter.clone()).reject();
            let mut client = answering(&layer, || Frames::from(USAGE).into_response());
            let mut answered = 0;
            for _ in 0..5 {
                let ready = client.ready().await.unwrap();
                if let Ok(response) = ready.call(chat("gpt-4o")).await {
                    read(response).await.unwrap();
                    answered += 1;
                }
            }
            assert_eq!(answered, let_in, "{store}, run {run}");
            let used: Vec<_> = limiter.stats("gpt-4o").limits.iter().map(|l| l.used).collect();
            assert_eq!(used, [3, 3 * CHARGE], "{store}, run {run}");
        }
    }
}
