use serde_json::{Value, json};

use super::{ADMIN, Rig, send};

#[tokio::test]
async fn malformed_body_error_names_the_field() {
    let rig = Rig::start("").await;
    for (body, expected) in [
        (json!({"keys": ["a"], "cots": {}}), "unknown field `cots`, expected one of `keys`"),
        (json!({"keys": ["a"], "cost": {"tokens": "many"}}), "cost.tokens: invalid type: string"),
        (json!({"keys": ["a"], "cost": {"tokens": 1.5}}), "an integer from 0 to 9007199254740991"),
        (
            json!({"keys": ["a"], "cost": {"custom": {"x": -1}}}),
            "cost.custom.x: invalid type: integer `-1`",
        ),
        (json!({"keys": "a"}), "keys: invalid type: string \"a\", expected a sequence"),
        (json!({"keys": [7]}), "keys[0]: invalid type: integer `7`, expected a string"),
        (json!({"keys": ["a"], "wait_ms": true}), "wait_ms: invalid type: boolean `true`"),
        (json!({"keys": ["a"], "wait_ms": 3_600_001}), "an integer from 0 to 3600000"),
        (json!({"keys": ["a"], "ttl_ms": 0}), "an integer from 1 to 3600000"),
        (json!({}), "missing field `keys`"),
        (json!([]), "expected"),
    ] {
        let response = rig.reserve(body).await;
        let detail = response.assert_problem(400, "bad_request");
        assert!(detail.contains(expected), "{detail} should contain {expected}");
    }
}

#[tokio::test]
async fn oversized_value_error_names_the_field() {
    let rig = Rig::start("serve: {bounds: {key: 8}}").await;
    let many =
        |n: u32| (0..n).map(|n| (n.to_string(), json!(1))).collect::<serde_json::Map<_, _>>();
    let metadata = |long: usize| -> serde_json::Map<_, _> {
        (0..8).map(|n| (format!("name-00{n}"), json!("v".repeat(long)))).collect()
    };
    let keys: Vec<_> = (0..17).map(|n| n.to_string()).collect();
    let names: serde_json::Map<_, _> = many(17).into_iter().map(|(k, _)| (k, json!(""))).collect();
    for (body, expected) in [
        (json!({"keys": []}), "keys: must not be empty"),
        (json!({"keys": keys}), "keys: 17 keys; at most 16"),
        (json!({"keys": ["a", ""]}), "keys[1]: must not be empty"),
        (json!({"keys": ["123456789"]}), "keys[0]: 9 bytes; at most 8"),
        (json!({"keys": ["a"], "cost": {"custom": many(17)}}), "cost.custom: 17 dimensions"),
        (
            json!({"keys": ["a"], "cost": {"custom": {"tokens": 1}}}),
            "cost.custom.tokens: is a built-in dim",
        ),
        (
            json!({"keys": ["a"], "cost": {"custom": {"usd": 1}}}),
            "cost.custom.usd: is a built-in dim",
        ),
        (json!({"keys": ["a"], "cost": {"custom": {"x".repeat(65): 1}}}), "a name has 65 bytes"),
        (json!({"keys": ["a"], "metadata": names}), "metadata: 17 entries"),
        (json!({"keys": ["a"], "metadata": {"": "v"}}), "metadata: a name must not be empty"),
        (
            json!({"keys": ["a"], "cost": {"custom": {"\u{1f99c}".repeat(17): 1}}}),
            "a name has 68 bytes; at most 64",
        ),
        (json!({"keys": ["a"], "metadata": {"n": "v".repeat(257)}}), "257 characters"),
        (json!({"keys": ["a"], "metadata": metadata(249)}), "metadata: 2056 bytes of names"),
    ] {
        let response = rig.reserve(body).await;
        // A JSON schema cannot express lengths in bytes.
        let status = if expected.contains("bytes") { 422 } else { 400 };
        let detail = response.assert_problem(status, "invalid");
        assert!(detail.contains(expected), "{detail} should contain {expected}");
    }
    rig.reserve(json!({"keys": ["a"], "metadata": metadata(248)})).await.assert_status(201);
    rig.get("/v1/stats/123456789").await.assert_problem(422, "invalid");
    rig.post("/v1/decide", json!({"keys": []})).await.assert_problem(400, "invalid");
}

#[tokio::test]
async fn body_must_be_json_within_the_size_limit() {
    let rig = Rig::start("").await;
    let request = |path: &str| rig.request("POST", path).bearer_auth(ADMIN);
    let json = |path: &str| request(path).header("content-type", "application/json; charset=utf-8");
    for kind in ["text/plain", "application/jsonx", "application/x-www-form-urlencoded"] {
        let form = request("/v1/reserve").header("content-type", kind).body("{\"keys\":[\"a\"]}");
        send(form).await.assert_problem(415, "unsupported_media_type");
    }
    send(request("/v1/reserve").body("{}")).await.assert_problem(415, "unsupported_media_type");
    send(json("/v1/reserve").body("{\"keys\":[\"a\"]}")).await.assert_status(201);
    for body in ["", "{", "{\"keys\":[\"a\"]} {}", "{\"keys\":[\"a\"],\"keys\":[]}", "\u{0}"] {
        send(json("/v1/reserve").body(body)).await.assert_problem(400, "bad_request");
    }
    let deep = "[".repeat(100_000);
    send(json("/v1/reserve").body(format!("{{\"keys\":{deep}")))
        .await
        .assert_problem(400, "bad_request");
    let long = " ".repeat(256 * 1_024 + 1);
    send(json("/v1/reserve").body(long.clone())).await.assert_problem(413, "body_too_large");
    let keyed = json("/v1/reserve").header("idempotency-key", "k").body(long);
    send(keyed).await.assert_problem(413, "body_too_large");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let rig = Rig::start("").await;
    let wrong = rig.send("PUT", "/v1/reserve", &Value::Null).await;
    wrong.assert_problem(405, "method_not_allowed");
    assert_eq!(wrong.header("allow"), "POST");
    let wrong = rig.send("POST", "/v1/quotas/a", &Value::Null).await;
    wrong.assert_problem(405, "method_not_allowed");
    rig.get("/v1/nothing").await.assert_problem(404, "unknown_path");
    rig.get("/v1/stats/%ff").await.assert_problem(400, "bad_request");
    rig.get("/v1/stats?limit=0").await.assert_problem(400, "bad_request");
    rig.get("/v1/quotas?before=a").await.assert_problem(400, "bad_request");
}
