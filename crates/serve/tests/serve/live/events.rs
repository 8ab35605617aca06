use std::time::Duration;

use paceline::limiter::{KeySnapshot, LearnedLimit, RateLimited};
use paceline::quota::{Cost, Dimension};
use serde_json::Value;

use super::{Rig, expected, keys};

const QUOTAS: &str = "
quotas:
  chat: {rpm: 100, tpm: 5000, concurrency: 4}
  mail: {rpm: 2}
  idle: {rpd: 7}
";

#[tokio::test]
async fn first_event_is_immediate_and_next_after_a_second() {
    let rig = Rig::start(QUOTAS).await;
    let mut events = rig.events().await;
    assert_eq!(events.response.headers()["content-type"], "text/event-stream");
    assert_eq!(events.response.headers()["cache-control"], "no-store");
    let first = events.next().await.unwrap();
    let second = rig.next(&mut events).await;
    let at = |snapshot: &serde_json::Value| snapshot["at"].as_u64().unwrap();
    assert_eq!(at(&second), at(&first) + 1_000);
    assert_eq!(second["past"]["second"], at(&second) / 1_000);
    // A later client need not wait, either.
    assert_eq!(rig.events().await.next().await.unwrap()["at"], second["at"]);
}

#[tokio::test]
async fn snapshot_keys_match_the_limiter() {
    let rig = Rig::start(QUOTAS).await;
    let cost = Cost::new().tokens(700);
    rig.limiter.try_acquire("chat", &cost).unwrap().settle(&Cost::new().tokens(333));
    let _open = [0, 1].map(|_| rig.limiter.try_acquire("chat", &cost).unwrap());
    let mut waits = [0, 1, 2].map(|_| rig.limiter.acquire("mail", &Cost::new()));
    let _granted: Vec<_> = waits.iter_mut().filter_map(|wait| wait.arrive()).collect();
    let mut events = rig.events().await;
    let snapshot = events.next().await.unwrap();
    let shown = keys(&snapshot);
    for key in ["chat", "mail", "idle"] {
        let limits = shown[key]["limits"].as_array().unwrap().iter().map(|limit| {
            let of = |name: &str| limit[name].as_u64().unwrap();
            let dimension = limit["dimension"].as_str().unwrap().to_owned();
            (dimension, of("limit"), of("used"), of("held"))
        });
        assert_eq!(limits.collect::<Vec<_>>(), expected(&rig.limiter, key), "{key}");
        assert_eq!(shown[key]["waiting"], rig.limiter.stats(key).waiting as u64, "{key}");
    }
    assert_eq!(shown["mail"]["waiting"], 1);
    assert_eq!((&snapshot["waiting"], &snapshot["others"]), (&1.into(), &0.into()));
    // Keys with waiting requests come first.
    assert_eq!(snapshot["keys"][0]["key"], "mail");
    let fresh_at = rig.limiter.stats("mail").limits[0].fresh_at.as_nanos().div_ceil(1_000_000);
    assert_eq!(shown["mail"]["limits"][0]["fresh_at"], fresh_at);
    assert!(shown["idle"]["limits"][0].get("fresh_at").is_none());
}

#[tokio::test]
async fn decisions_are_shown_in_second_of_decision() {
    let rig = Rig::start("quotas: {k: {rpm: 10}}\nmargin: {percent: 0, lag: 0s}").await;
    let mut events = rig.events().await;
    events.next().await.unwrap();
    rig.next(&mut events).await;
    let take = |times: u32| {
        for _ in 0..times {
            drop(rig.limiter.try_acquire("k", &Cost::new()));
        }
    };
    take(4);
    rig.next(&mut events).await;
    rig.next(&mut events).await;
    take(9);
    let snapshot = rig.next(&mut events).await;
    let last = |name: &str| {
        let all = snapshot["past"][name].as_array().unwrap();
        all[all.len() - 4..].iter().map(|n| n.as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(last("granted"), [4, 0, 6, 0]);
    assert_eq!(last("denied"), [0, 0, 3, 0]);
    assert_eq!(snapshot["totals"], serde_json::json!({"granted": 10, "denied": 3, "waited": 0}));
    assert_eq!(snapshot["news"][0]["kind"], "refused");
    assert_eq!(snapshot["news"][0]["detail"], "requests: limit reached");
    assert_eq!(snapshot["news"][0]["more"], 2);
}

#[tokio::test]
async fn busiest_keys_are_shown_and_others_counted() {
    let rig = Rig::start("quotas: {'tenant:*': {rpm: 1000}}").await;
    for number in 0..1_000_u64 {
        for _ in 0..=number % 7 {
            drop(rig.limiter.try_acquire(&format!("tenant:{number}"), &Cost::new()).unwrap());
        }
    }
    let snapshot = rig.events().await.next().await.unwrap();
    let shown = keys(&snapshot);
    assert_eq!((shown.len(), snapshot["others"].as_u64()), (200, Some(800)));
    // 142 keys used seven; of the 143 that used six, 58 follow by name.
    let used = |key: &str| shown[key]["limits"][0]["used"].as_u64().unwrap();
    assert_eq!(shown.keys().filter(|key| used(key) == 7).count(), 142);
    assert_eq!(shown.keys().filter(|key| used(key) == 6).count(), 58);
}

#[tokio::test]
async fn rare_events_are_listed_newest_first() {
    let rig = Rig::start(QUOTAS).await;
    let mut events = rig.events().await;
    rig.limiter.quotas().set("mail", &paceline::Quota::new().rpm(50)).unwrap();
    let refusal = RateLimited::new(Some(Duration::from_secs(9)));
    rig.limiter.feedback().rate_limited("chat", &refusal);
    let snapshot = rig.next(&mut events).await;
    let news = snapshot["news"].as_array().unwrap();
    let entry = |n: usize| (news[n]["key"].as_str().unwrap(), news[n]["kind"].as_str().unwrap());
    assert_eq!(entry(news.len() - 1), ("mail", "quota changed"));
    assert!((0..news.len()).any(|n| entry(n) == ("chat", "cooling down")), "{news:?}");
    let until = rig.limiter.stats("chat").cooling_until.unwrap().as_nanos().div_ceil(1_000_000);
    let chat = &keys(&snapshot)["chat"];
    assert_eq!(chat["cooling_until"], until);
    let reason = "too many requests or tokens at once";
    assert_eq!(chat["cooling_reason"], reason);
    let is_reason = |news: &Value| news["detail"].as_str().is_some_and(|s| s.ends_with(reason));
    assert!(news.iter().any(is_reason), "{news:?}");
}

#[tokio::test]
async fn learned_limits_are_listed_in_words() {
    let rig = Rig::start(QUOTAS).await;
    let mut events = rig.events().await;
    let mut key = KeySnapshot::new("chat", Vec::new());
    key.learned = vec![LearnedLimit::new(Dimension::Concurrency, 8.0, rig.limiter.now(), 1)];
    rig.limiter.state().absorb(&[key]);
    let snapshot = rig.next(&mut events).await;
    assert_eq!(
        keys(&snapshot)["chat"]["learned"],
        serde_json::json!([{
            "limit": "8 requests in flight",
            "provenance": "a first estimate, 1s ago, by an earlier run",
        }])
    );
}

#[tokio::test]
async fn event_streams_end_with_the_server() {
    let rig = Rig::start(QUOTAS).await;
    let mut events = rig.events().await;
    events.next().await.unwrap();
    let (ended, stopped) = tokio::join!(async { events.next().await }, rig.server.shutdown());
    assert_eq!(ended, None);
    stopped.unwrap();
}

#[tokio::test]
async fn event_streams_of_a_client_are_bounded() {
    let rig = Rig::start(QUOTAS).await;
    let mut all = Vec::new();
    for _ in 0..100 {
        all.push(rig.events().await);
    }
    let refused = rig.get("/live/events").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert_eq!(refused.headers()["retry-after"], "5");
    all.pop();
    // A disconnected client is detected at the next write.
    while rig.get("/live/events").await.status() != 200 {
        rig.clock.advance(Duration::from_secs(1));
    }
}
