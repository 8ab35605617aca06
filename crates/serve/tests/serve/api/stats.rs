use paceline::limiter::{KeySnapshot, LearnedLimit, RateLimited};
use paceline::provider::UtilizationReading;
use paceline::quota::Dimension;
use serde_json::{Value, json};

use super::Rig;

#[tokio::test]
async fn stats_match_the_limiter() {
    let rig = Rig::start("quotas: {a: {rpm: 10, tpm: 1000, concurrency: 2}}").await;
    let response = rig.reserve(json!({"keys": ["a"], "cost": {"tokens": 300}})).await;
    let id = response.assert_status(201).body["id"].as_str().unwrap();
    let fresh = "2026-01-01T00:00:00.000000000Z";
    let response = rig.get("/v1/stats/a").await;
    let limits = response.assert_status(200).body["limits"].as_array().unwrap();
    assert_eq!((&response.body["key"], &response.body["waiting"]), (&json!("a"), &json!(0)));
    assert!(response.body.get("cooling_until").is_none());
    let summary = |limit: &Value| {
        let named = ["used", "held", "available"].map(|name| limit[name].as_u64().unwrap());
        (limit["dimension"].as_str().unwrap().to_owned(), limit["window_ms"].as_u64(), named)
    };
    assert_eq!(summary(&limits[0]), ("requests".to_owned(), Some(60_000), [1, 0, 9]));
    assert_eq!(summary(&limits[1]), ("tokens".to_owned(), Some(60_000), [0, 300, 700]));
    assert_eq!(summary(&limits[2]), ("concurrency".to_owned(), None, [0, 1, 1]));
    rig.release(id).await.assert_status(200);
    let response = rig.get("/v1/stats/a").await;
    // The limit is completely unused by now.
    assert!(response.body["limits"][1]["fresh_at"].as_str().unwrap() <= fresh, "{response:?}");
    assert_eq!(response.body["limits"][1]["limit"], 1000);
    assert_eq!(response.body["limits"][1]["original"], 1000);
    let unknown = rig.get("/v1/stats/unknown%2Fkey").await;
    assert_eq!(
        unknown.assert_status(200).body,
        json!({"key": "unknown/key", "limits": [], "age_ms": 0, "waiting": 0, "learned": []})
    );
}

#[tokio::test]
async fn total_has_no_window_in_quota_and_stats() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    let quota = json!({"rpm": 10, "tokens_total": 100, "usd_total": 2.5});
    rig.send("PUT", "/v1/quotas/a", &quota).await.assert_status(200);
    assert_eq!(rig.get("/v1/quotas/a").await.body["quota"]["tokens_total"], 100);
    assert_eq!(rig.get("/v1/quotas/a").await.body["quota"]["usd_total"], 2.5);
    let cost = json!({"tokens": 60, "usd": 0});
    rig.reserve(json!({"keys": ["a"], "cost": cost})).await.assert_status(201);
    let refused = rig.reserve(json!({"keys": ["a"], "cost": cost})).await;
    // The one in flight may use less.
    refused.assert_problem(429, "limit_exceeded");
    let stats = rig.get("/v1/stats/a").await;
    let limits = stats.assert_status(200).body["limits"].as_array().unwrap();
    let total = limits.iter().find(|limit| limit["limit"] == 100).unwrap();
    assert_eq!((&total["held"], &total["available"]), (&json!(60), &json!(40)));
    assert!(total.get("window_ms").is_none() && total.get("fresh_at").is_none(), "{total}");
}

#[tokio::test]
async fn stats_include_refusal_of_account() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    let mut refusal = paceline::provider::Refusal::new(paceline::provider::RefusalKind::Account);
    refusal.text = "Your credit balance is too low".into();
    for _ in 0..3 {
        let permit = rig.limiter.try_acquire("a", &paceline::Cost::new()).unwrap();
        rig.limiter.feedback().rate_limited("a", &RateLimited::of(refusal.clone()));
        permit.settle(&paceline::Cost::new());
    }
    let response = rig.get("/v1/stats/a").await;
    assert_eq!(response.assert_status(200).body["account_refused"], &*refusal.text);
}

#[tokio::test]
async fn stats_include_outage() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    for _ in 0..5 {
        rig.limiter.feedback().rate_limited("a", &RateLimited::new(None).overloaded());
    }
    let response = rig.get("/v1/stats/a").await;
    let since = &response.assert_status(200).body["outage_since"];
    assert_eq!(*since, "2026-01-01T00:00:00.000000000Z");
}

#[tokio::test]
async fn stats_include_cool_down_and_reduction() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}, reduction: {spread: 0s}").await;
    let refusal = RateLimited::new(Some(std::time::Duration::from_secs(7)));
    rig.limiter.feedback().rate_limited("a", &refusal);
    let response = rig.get("/v1/stats/a").await;
    assert_eq!(response.assert_status(200).body["cooling_until"], "2026-01-01T00:00:07.000000000Z");
    assert_eq!(
        (&response.body["limits"][0]["limit"], &response.body["limits"][0]["original"]),
        (&json!(5), &json!(10))
    );
    let refused = rig.reserve(json!({"keys": ["a"]})).await;
    refused.assert_problem(429, "cooling_down");
    assert_eq!(refused.header("retry-after"), "7");
}

#[tokio::test]
async fn stats_include_learned_limits() {
    let rig = Rig::start("quotas: {a: {rpm: 600}}").await;
    let mut key = KeySnapshot::new("a", Vec::new());
    key.learned = vec![LearnedLimit::new(Dimension::Requests, 2.5, rig.limiter.now(), 3)];
    rig.limiter.state().absorb(&[key]);
    let response = rig.get("/v1/stats/a").await;
    assert_eq!(
        response.assert_status(200).body["learned"],
        json!([{
            "dimension": "requests", "amount": 2.5, "configured": 10.0, "events": 3,
            "measured_at": "2026-01-01T00:00:00.000000000Z", "source": "store",
        }])
    );
}

#[tokio::test]
async fn stats_include_utilization_of_windows() {
    let rig = Rig::start("quotas: {a: {concurrency: 4, utilization: 0.9}}").await;
    let permit = rig.limiter.try_acquire("a", &paceline::Cost::new()).unwrap();
    let mut reading = UtilizationReading::new("5h", 0.95);
    reading.reset = Some(std::time::Duration::from_secs(60));
    permit.observe_utilization(&[reading]);
    let response = rig.get("/v1/stats/a").await;
    let resets_at = "2026-01-01T00:01:00.000000000Z";
    assert_eq!(
        response.assert_status(200).body["utilization"],
        json!([{"window": "5h", "used": 0.95, "resets_at": resets_at, "held_to": 0.9}])
    );
    assert_eq!(response.body["cooling_until"], resets_at);
}

#[tokio::test]
async fn keys_are_listed_in_sorted_pages() {
    let rig = Rig::start("quotas: {b: {rpm: 1}, d: {rpm: 1}, 'x*': {rpm: 1}}").await;
    for key in ["c", "a", "xy"] {
        rig.open_reservation(key).await;
    }
    let mut seen = Vec::new();
    let mut path = "/v1/stats?limit=2".to_owned();
    loop {
        let page = rig.get(&path).await;
        let keys = page.assert_status(200).body["keys"].as_array().unwrap().clone();
        assert!(keys.len() <= 2);
        seen.extend(keys.iter().map(|key| key["key"].as_str().unwrap().to_owned()));
        let Some(next) = page.body["next"].as_str() else { break };
        path = format!("/v1/stats?limit=2&after={next}");
    }
    let expected: Vec<_> = rig.limiter.state().keys().iter().map(ToString::to_string).collect();
    assert_eq!(seen, expected);
    assert!(seen.is_sorted() && seen.contains(&"xy".to_owned()), "{seen:?}");
}

#[tokio::test]
async fn decision_consumes_no_quota_and_names_the_binding_key() {
    let rig = Rig::start("quotas: {tenant: {rpm: 5}, model: {rpm: 1, tpm: 100}}").await;
    let request = json!({"keys": ["tenant", "model"]});
    let response = rig.post("/v1/decide", request.clone()).await;
    assert_eq!(
        (&response.assert_status(200).body["allowed"], &response.body["code"]),
        (&json!(true), &json!("ok"))
    );
    assert_eq!(response.body["keys"][1]["limits"][0]["available"], 1);
    assert!(response.header("ratelimit").contains("r=5"), "{response:?}");
    assert_eq!(rig.used("tenant"), 0);
    rig.open_reservation("model").await;
    rig.advance(20);
    let response = rig.post("/v1/decide", request).await;
    assert_eq!(response.assert_status(200).body["allowed"], false);
    assert_eq!(response.body["code"], "rpm_exceeded");
    assert_eq!(response.body["key"], "model");
    assert_eq!((&response.body["need"], &response.body["limit"]), (&json!(1), &json!(1)));
    assert_eq!(response.body["fits_at"], "2026-01-01T00:01:00.000000000Z");
    assert_eq!(
        (&response.body["retry_after_ms"], &response.body["never"]),
        (&json!(40_000), &json!(false))
    );
    assert_eq!(response.body["keys"][0]["allowed"], true);
    let never = json!({"keys": ["tenant", "model"], "cost": {"tokens": 101}});
    let response = rig.post("/v1/decide", never).await;
    assert_eq!(
        (&response.body["never"], &response.body["dimension"]),
        (&json!(true), &json!("tokens"))
    );
}
