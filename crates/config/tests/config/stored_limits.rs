//! A layer with a limiter that has a store: limits hold across restarts.

use std::fs;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use paceline::middleware::RateLimitLayer;
use paceline::{Cost, Limiter};
use paceline_config as config;
use tower::{Layer, Service, ServiceExt, service_fn};

/// The estimated tokens of [`CHAT`] for an unknown provider: bytes / 4, 2 for the message, and
/// `max_tokens`.
const CHARGE: u64 = 5 + 2 + 50;

#[tokio::test]
async fn exhausted_daily_limit_and_usage_survive_restarts() {
    for store in ["yaml: state.yaml", "sqlite: state.db"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paceline.yaml");
        let quota = "{rpd: 3, tpd: 10000, algorithm: sliding_window}";
        let text = format!("quotas: {{gpt-4o: {quota}}}\nmargin: {{percent: 0, lag: 0s}}\n");
        fs::write(&path, format!("{text}store: {{{store}, flush: 1h}}\n")).unwrap();
        // Each run has a new limiter and layer, and ends without closing the limiter.
        for (run, granted) in [3, 0, 0].into_iter().enumerate() {
            let limiter = config::open(&path).unwrap().limiter;
            let layer = RateLimitLayer::new(limiter.clone()).reject();
            let mut client = layer.layer(service_fn(async |_: Request<String>| {
                Ok::<_, std::io::Error>(Response::new(Full::new(Bytes::from(USAGE))))
            }));
            let mut answered = 0;
            for _ in 0..5 {
                let ready = client.ready().await.unwrap();
                if let Ok(response) = ready.call(chat()).await {
                    response.into_body().collect().await.unwrap();
                    answered += 1;
                }
            }
            assert_eq!(answered, granted, "{store}, run {run}");
            let used: Vec<_> = limiter.stats("gpt-4o").limits.iter().map(|l| l.used).collect();
            assert_eq!(used, [3, 3 * CHARGE], "{store}, run {run}");
        }
    }
}

#[test]
fn usage_survives_a_restart_in_each_store() {
    for store in ["yaml: state/s.yaml", "sqlite: state/s.db"] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("quotas: {{a: {{rpd: 3}}}}\nstore: {{{store}, flush: 1h}}\n");
        let path = folder.path().join("paceline.yaml");
        fs::write(&path, text).unwrap();
        let limiter = config::open(&path).unwrap().limiter;
        assert!(take(&limiter, "a") && take(&limiter, "a"), "{store}");
        drop(limiter);
        assert!(folder.path().join("state").is_dir(), "the path is relative to the file");
        let again = config::open(&path).unwrap().limiter;
        assert!(take(&again, "a") && !take(&again, "a"), "{store}");
    }
}

#[test]
fn window_changed_between_two_runs_counts_stored_usage() {
    for store in ["yaml: s.yaml", "sqlite: s.db"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paceline.yaml");
        let run = |limits: &str| {
            let quota = format!("{{limits: [{limits}], algorithm: sliding_window}}");
            let text = format!("quotas: {{a: {quota}}}\nstore: {{{store}, flush: 1h}}\n");
            fs::write(&path, text).unwrap();
            config::open(&path).unwrap().limiter
        };
        let limiter = run("{dimension: requests, limit: 3, window: 1h}");
        assert!(take(&limiter, "a") && take(&limiter, "a"), "{store}");
        drop(limiter);
        for _ in 0..2 {
            let again = run("{dimension: requests, limit: 3, window: 2h}");
            assert_eq!(again.stats("a").limits[0].used, 2, "{store}");
        }
        let again = run("{dimension: requests, limit: 3, window: 2h}");
        assert!(take(&again, "a") && !take(&again, "a"), "{store}");
        drop(again);
        let again = run("{dimension: requests, limit: 3, window: 2h}");
        assert_eq!(again.stats("a").limits[0].used, 3, "{store}");
    }
}

fn take(limiter: &Limiter, key: &str) -> bool {
    let permit = limiter.try_acquire(key, &Cost::new());
    permit.is_ok_and(|permit| {
        permit.settle(&Cost::new());
        true
    })
}

fn chat() -> Request<String> {
    Request::post("/v1/chat/completions").body(CHAT.to_owned()).unwrap()
}

const CHAT: &str = r#"{"model": "gpt-4o", "max_tokens": 50, "messages": [
    {"role": "user", "content": "Say this is a test"}]}"#;

/// A response body with a usage of 12 input and 9 output tokens.
const USAGE: &str = r#"{"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 9}}"#;
