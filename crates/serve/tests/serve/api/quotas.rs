use paceline::limiter::RateLimited;
use serde_json::{Value, json};

use super::{ADMIN, Rig, send};

#[tokio::test]
async fn quota_is_set_read_changed_and_deleted() {
    let rig = Rig::start("quotas: {b: {rpm: 3}}").await;
    let quota = json!({"rpm": 5, "limits": [
        {"dimension": "tokens", "limit": 9, "window": "1h", "algorithm": "token_bucket", "burst": 2},
    ]});
    let put = rig.send("PUT", "/v1/quotas/a", &quota).await;
    assert_eq!(put.assert_status(201).body, json!({"name": "a", "origin": "set", "quota": quota}));
    assert_eq!(rig.get("/v1/quotas/a").await.assert_status(200).body, put.body);
    assert_eq!(rig.limiter.stats("a").limits.len(), 2);
    rig.send("PUT", "/v1/quotas/a", &json!({"rpm": 6})).await.assert_status(200);
    assert_eq!(rig.limiter.stats("a").limits[0].limit, 6);
    let all = rig.get("/v1/quotas").await;
    assert_eq!(
        all.assert_status(200).body,
        json!({"quotas": [
            {"name": "a", "origin": "set", "quota": {"rpm": 6}},
            {"name": "b", "origin": "configured", "quota": {"rpm": 3}},
        ]})
    );
    rig.send("DELETE", "/v1/quotas/a", &Value::Null).await.assert_status(204);
    rig.send("DELETE", "/v1/quotas/a", &Value::Null).await.assert_problem(404, "unknown_quota");
    rig.get("/v1/quotas/a").await.assert_problem(404, "unknown_quota");
    assert!(rig.limiter.stats("a").limits.is_empty());
}

#[tokio::test]
async fn quota_in_answer_sets_the_same_quota() {
    let rig = Rig::start("").await;
    let quota = json!({"rpm": 9, "margin": {"percent": 1, "lag": "50ms"}, "weight": 3,
        "utilization": 0.9, "max_wait": "1500ms", "shared": true});
    let put = rig.send("PUT", "/v1/quotas/a*", &quota).await;
    assert_eq!(put.assert_status(201).body["quota"], quota);
    let rejects = json!({"usd_per_day": 5, "mode": "reject"});
    let put = rig.send("PUT", "/v1/quotas/r", &rejects).await;
    assert_eq!(put.assert_status(201).body["quota"], rejects);
    assert_eq!(rig.get("/v1/quotas/r").await.assert_status(200).body["quota"], rejects);
    // A request of up to 1,000 tokens is admitted once nothing of the 500 is used.
    let part = json!({"tpm": 1_000, "share": 0.5});
    let put = rig.send("PUT", "/v1/quotas/b", &part).await;
    let set = rig.limiter.quotas().get("b").unwrap().quota;
    rig.send("PUT", "/v1/quotas/b", &put.assert_status(201).body["quota"]).await.assert_status(200);
    assert_eq!(rig.limiter.quotas().get("b").unwrap().quota, set);
}

#[tokio::test]
async fn quota_names_hold_slashes_globs_and_expressions() {
    let rig = Rig::start("").await;
    for (path, name, key) in [
        ("models%2Fa%20b", "models/a b", "models/a b"),
        ("tenant:*", "tenant:*", "tenant:7"),
        ("regex:u-%5B0-9%5D%2B", "regex:u-[0-9]+", "u-42"),
        ("%C3%A9", "é", "é"),
    ] {
        let path = format!("/v1/quotas/{path}");
        rig.send("PUT", &path, &json!({"rpm": 7})).await.assert_status(201);
        assert_eq!(rig.get(&path).await.assert_status(200).body["name"], name);
        assert_eq!(rig.limiter.stats(key).limits[0].limit, 7, "{key}");
        rig.send("DELETE", &path, &Value::Null).await.assert_status(204);
    }
}

#[tokio::test]
async fn quota_errors_match_configuration_errors() {
    let rig = Rig::start("serve: {bounds: {key: 8}}").await;
    for (body, expected) in [
        (json!({"rmp": 5}), "quotas.a.rmp: unknown field \"rmp\" (did you mean `rpm`?)"),
        (json!({"rpm": "5"}), "quotas.a.rpm: must be a whole number"),
        (json!({"limits": [{"dimension": "tokens", "limit": 5}]}), "`window` is missing"),
        (json!({"regex": true}), "quotas.a.regex: not allowed here"),
        (json!({"share": 2}), "quotas.a.share: must be above 0 and at most 1"),
        (json!([1]), "quotas.a: must be a map of"),
    ] {
        let response = rig.send("PUT", "/v1/quotas/a", &body).await;
        let detail = response.assert_problem(422, "invalid");
        assert!(detail.contains(expected), "{detail} should contain {expected}");
    }
    for twice in ["{\"rpm\": 5, \"rpm\": 6}", "{\"limits\": [{\"limit\": 5, \"limit\": 6}]}"] {
        let put = rig.request("PUT", "/v1/quotas/a").bearer_auth(ADMIN);
        let response = send(put.header("content-type", "application/json").body(twice)).await;
        let detail = response.assert_problem(400, "bad_request");
        assert!(detail.contains("duplicate field `"), "{detail}");
    }
    let long = rig.send("PUT", "/v1/quotas/123456789", &json!({})).await;
    assert!(long.assert_problem(422, "invalid").contains("9 bytes"));
    assert_eq!(rig.get("/v1/quotas").await.body, json!({"quotas": []}));
}

#[tokio::test]
async fn raised_quota_admits_waiting_requests() {
    let rig = Rig::start("quotas: {a: {rpm: 1}}").await;
    rig.open_reservation("a").await;
    let (granted, ()) =
        tokio::join!(rig.reserve(json!({"keys": ["a"], "wait_ms": 60_000})), async {
            rig.wait_until_waiting("a", 1).await;
            rig.send("PUT", "/v1/quotas/a", &json!({"rpm": 2})).await.assert_status(200);
        });
    granted.assert_status(201);
}

#[tokio::test]
async fn reset_ends_outage() {
    let rig = Rig::start("quotas: {a: {rpm: 5}}").await;
    for body in [json!({"key": "a"}), json!({"all": true})] {
        for _ in 0..5 {
            rig.limiter.feedback().rate_limited("a", &RateLimited::new(None).overloaded());
        }
        rig.reserve(json!({"keys": ["a"]})).await.assert_problem(429, "cooling_down");
        rig.post("/v1/reset", body).await.assert_status(204);
        assert!(rig.get("/v1/stats/a").await.body["outage_since"].is_null());
        rig.open_reservation("a").await;
    }
}

#[tokio::test]
async fn reset_clears_usage_of_one_key_or_all_keys() {
    let rig = Rig::start("quotas: {a: {rpm: 5}, b: {rpm: 5}}").await;
    for key in ["a", "b"] {
        let id = rig.open_reservation(key).await;
        rig.settle(&id, json!({})).await.assert_status(200);
    }
    rig.post("/v1/reset", json!({"key": "a"})).await.assert_status(204);
    assert_eq!((rig.used("a"), rig.used("b")), (0, 1));
    rig.post("/v1/reset", json!({"all": true})).await.assert_status(204);
    assert_eq!(rig.used("b"), 0);
    rig.post("/v1/reset", json!({"all": false})).await.assert_problem(400, "invalid");
    rig.post("/v1/reset", json!({"key": ""})).await.assert_problem(400, "invalid");
    for body in [json!({}), json!({"key": "a", "all": true}), json!({"keys": ["a"]})] {
        rig.post("/v1/reset", body).await.assert_problem(400, "bad_request");
    }
}
