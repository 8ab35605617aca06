//! Subscriptions: the used parts of an account's windows, which quotas can hold requests to.

use std::time::Duration;

use http::Response;
use paceline::limiter::{Code, Limiter};
use paceline::middleware::RateLimitLayer;
use paceline::provider::ANTHROPIC;
use paceline::quota::{Quota, Share};
use tower::{Service, ServiceExt};

use super::inner::Frames;
use super::{builder, chat, client_returning, read, send};

/// Returns a limiter that holds `account` to 90 % of its windows.
fn limiter() -> Limiter {
    let held = Quota::new().concurrency(4).with_utilization(Share::percent(90).unwrap());
    let quotas = builder().provider(ANTHROPIC).quota("account", held);
    quotas.quota("*", Quota::new().rpm(50)).build().unwrap()
}

/// Returns a response that states the used parts of the windows of 5 hours and 7 days, which start again in
/// 2 hours and 3 days.
fn stating(five_hours: &'static str, seven_days: &'static str) -> impl Fn() -> Response<Frames> {
    move || {
        let body = r#"{"type": "message", "usage": {"input_tokens": 12, "output_tokens": 5}}"#;
        let mut response = Frames::from(body).into_response();
        for (name, value) in [
            ("date", "Wed, 30 Sep 2026 20:00:00 GMT"),
            ("anthropic-ratelimit-unified-5h-utilization", five_hours),
            ("anthropic-ratelimit-unified-5h-reset", "1790805600"),
            ("anthropic-ratelimit-unified-7d-utilization", seven_days),
            ("anthropic-ratelimit-unified-7d-reset", "1791057600"),
        ] {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
    }
}

async fn exchange(limiter: &Limiter, five_hours: &'static str, seven_days: &'static str) {
    let layer = RateLimitLayer::new(limiter.clone()).scope("account");
    let mut client = client_returning(&layer, stating(five_hours, seven_days));
    let _ = read(send(&mut client, chat("claude-opus-5")).await).await;
}

/// Returns the time until which a key cools down.
fn held(limiter: &Limiter, key: &str) -> Option<Duration> {
    limiter.stats(key).cooling_until.map(|until| until - limiter.now())
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_the_window_whose_part_is_used() {
    let limiter = limiter();
    exchange(&limiter, "0.89", "0.30").await;
    assert_eq!(held(&limiter, "account"), None);
    exchange(&limiter, "0.90", "0.31").await;
    assert_eq!(held(&limiter, "account"), Some(Duration::from_secs(7_200)));
    // Another model, whose responses have said nothing, is held too.
    let layer = RateLimitLayer::new(limiter.clone()).scope("account").max_wait(Duration::ZERO);
    let mut client = client_returning(&layer, stating("0", "0"));
    let error = client.ready().await.unwrap().call(chat("claude-haiku-5")).await.unwrap_err();
    let refused = error.refused().unwrap();
    assert_eq!((refused.code, refused.key.as_str()), (Code::CoolingDown, "account"));
    tokio::time::advance(Duration::from_secs(7_201)).await;
    exchange(&limiter, "0.01", "0.32").await;
    assert_eq!(held(&limiter, "account"), None);
}

#[tokio::test(start_paused = true)]
async fn later_window_holds_longer() {
    let limiter = limiter();
    exchange(&limiter, "0.95", "0.97").await;
    assert_eq!(held(&limiter, "account"), Some(Duration::from_secs(259_200)));
}

#[tokio::test(start_paused = true)]
async fn windows_are_shown_without_holding_where_no_quota_asks() {
    let limiter = limiter();
    exchange(&limiter, "0.95", "0.125").await;
    assert_eq!(held(&limiter, "claude-opus-5"), None);
    let shown = |key| -> Vec<_> {
        limiter.stats(key).utilization.iter().map(ToString::to_string).collect()
    };
    assert_eq!(shown("claude-opus-5"), ["5h window 95 % used", "7d window 12.5 % used"]);
    let held_to = ["5h window 95 % used, held to 90 %", "7d window 12.5 % used, held to 90 %"];
    assert_eq!(shown("account"), held_to);
    tokio::time::advance(Duration::from_secs(7_201)).await;
    assert_eq!(shown("claude-opus-5"), ["7d window 12.5 % used"]);
}

#[tokio::test(start_paused = true)]
async fn another_quota_ends_the_hold_or_starts_it() {
    let limiter = limiter();
    exchange(&limiter, "0.95", "0.1").await;
    let set = |part: Option<u8>| {
        let quota = Quota::new().concurrency(4);
        let quota = match part {
            Some(part) => quota.with_utilization(Share::percent(part).unwrap()),
            None => quota,
        };
        limiter.quotas().set("account", &quota).unwrap();
    };
    set(Some(99));
    assert_eq!(held(&limiter, "account"), None);
    set(Some(10));
    assert_eq!(held(&limiter, "account"), Some(Duration::from_secs(259_200)));
    set(None);
    assert_eq!(held(&limiter, "account"), None);
}
