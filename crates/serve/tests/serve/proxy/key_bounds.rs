//! Floods of new keys through each API.

use serde_json::json;

use super::rig::{Proxy, TestUpstream, http};

/// More than any of the bounds of [`start`].
const FLOOD: usize = 60;

/// Starts a proxy in which one request exhausts each unnamed key for an hour, so that none is dropped.
async fn start() -> Proxy {
    let mut upstream = TestUpstream::start().await;
    let addr = upstream.addr;
    tokio::spawn(async move {
        loop {
            upstream
                .request()
                .await
                .answer("200 OK", "content-type: application/json\r\n", "{}")
                .await;
        }
    });
    let serve = "max_requests: 1\nwindow_millis: 3600000\nbounds: {keys: 40}\nmode: reject\n\
                 keys: [{key_pattern: silver, max_requests_per_window: 9}]";
    let hourly = "limits: [{dimension: requests, limit: 1, window: 1h}]";
    let quotas = format!(
        "unknown_key: {{{hourly}}}\nquotas:\n  gold: {{rpm: 1000}}\n  'pair-*': {{rpm: 1000, shared: true}}"
    );
    Proxy::serving(addr, serve, &quotas).await
}

async fn rate(proxy: &Proxy, key: &str) -> u16 {
    let post = http().post(proxy.url(&format!("/rate/{key}")));
    post.send().await.unwrap().status().as_u16()
}

async fn reserve(proxy: &Proxy, key: &str) -> u16 {
    let post = http().post(proxy.url("/v1/reserve")).json(&json!({"keys": [key]}));
    post.send().await.unwrap().status().as_u16()
}

async fn chat(proxy: &Proxy, model: &str) -> u16 {
    proxy.chat(model).send().await.unwrap().status().as_u16()
}

/// Sends requests of new keys, and returns the number that were added.
async fn flood(proxy: &Proxy, api: &str) -> usize {
    let mut added = 0;
    for number in 0..FLOOD {
        let key = format!("{api}-{number}");
        let status = match api {
            "rate" => rate(proxy, &key).await,
            "v1" => reserve(proxy, &key).await,
            _ => chat(proxy, &key).await,
        };
        assert!(matches!(status, 200 | 201 | 503), "{api}: {status}");
        added += usize::from(status != 503);
    }
    added
}

async fn assert_named_keys_are_granted(proxy: &Proxy) {
    assert_eq!([rate(proxy, "gold").await, rate(proxy, "silver").await], [200, 200]);
    assert_eq!([reserve(proxy, "gold").await, reserve(proxy, "pair-1").await], [201, 201]);
    assert_eq!([chat(proxy, "gold").await, chat(proxy, "pair-2").await], [200, 200]);
}

#[tokio::test]
async fn flood_of_rate_keys_is_bounded() {
    let proxy = start().await;
    assert_eq!(flood(&proxy, "rate").await, 20);
    assert_eq!([reserve(&proxy, "tenant").await, chat(&proxy, "model").await], [201, 200]);
    assert_named_keys_are_granted(&proxy).await;
}

#[tokio::test]
async fn flood_of_api_keys_is_bounded() {
    let proxy = start().await;
    assert_eq!(flood(&proxy, "v1").await, 10);
    assert_eq!([rate(&proxy, "user").await, chat(&proxy, "model").await], [200, 200]);
    assert_named_keys_are_granted(&proxy).await;
}

#[tokio::test]
async fn flood_of_proxied_keys_is_bounded() {
    let proxy = start().await;
    assert_eq!(flood(&proxy, "proxy").await, 10);
    assert_eq!([rate(&proxy, "user").await, reserve(&proxy, "tenant").await], [200, 201]);
    assert_named_keys_are_granted(&proxy).await;
}

#[tokio::test]
async fn floods_never_lock_out_named_keys() {
    let proxy = start().await;
    for api in ["proxy", "rate", "v1"] {
        flood(&proxy, api).await;
    }
    assert_named_keys_are_granted(&proxy).await;
    // A quota that is set later names its key exactly.
    assert_eq!(rate(&proxy, "bronze").await, 503);
    proxy.limiter.quotas().set("bronze", &paceline::Quota::new().rpm(5)).unwrap();
    assert_eq!(rate(&proxy, "bronze").await, 200);
}

#[tokio::test]
async fn key_bounds_are_configurable_per_api() {
    let upstream = TestUpstream::start().await;
    let serve = "max_requests: 1\nwindow_millis: 3600000\n\
                 bounds: {keys: 40, rate_keys: 3, api_keys: 2, proxy_keys: 1}";
    let proxy = Proxy::serving(upstream.addr, serve, "unknown_key: {rpm: 1}").await;
    assert_eq!([flood(&proxy, "rate").await, flood(&proxy, "v1").await], [3, 2]);
}
