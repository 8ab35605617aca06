use serde_json::{Value, json};

use super::{ADMIN, Response, Rig, send, with_json};

#[tokio::test]
async fn repeated_idempotency_key_replays_the_response() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    let request = json!({"keys": ["a"]});
    let first = rig.post_with_key("\"k-1\"", "/v1/reserve", request.clone()).await;
    first.assert_status(201);
    assert!(first.headers.get("idempotency-replayed").is_none());
    // With quotes, as in the draft, or without.
    for key in ["\"k-1\"", "k-1"] {
        rig.advance(1);
        let again = rig.post_with_key(key, "/v1/reserve", request.clone()).await;
        assert_eq!((again.status, &again.body), (201, &first.body));
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(again.header("location"), first.header("location"));
        assert_eq!(again.header("cache-control"), "no-store");
    }
    assert_eq!(rig.used("a"), 1);
    rig.post_with_key("k-2", "/v1/reserve", request).await.assert_status(201);
    assert_eq!(rig.used("a"), 2);
}

#[tokio::test]
async fn settlement_retry_replays_the_response() {
    let rig = Rig::start("quotas: {a: {tpm: 100}}").await;
    let id = rig.open_reservation("a").await;
    let path = format!("/v1/reservations/{id}/settle");
    let body = json!({"cost": {"tokens": 7}});
    let first = rig.post_with_key("s", &path, body.clone()).await;
    let again = rig.post_with_key("s", &path, body.clone()).await;
    assert_eq!((first.assert_status(200).status, &first.body), (again.status, &again.body));
    assert_eq!(rig.used("a"), 7);
    rig.post(&path, body).await.assert_problem(409, "already_settled");
    // Renewals, releases and resets are replayed as well.
    let id = rig.open_reservation("a").await;
    for (operation, status) in [("renew", 200), ("release", 200)] {
        let path = format!("/v1/reservations/{id}/{operation}");
        let first = rig.post_with_key(operation, &path, Value::Null).await;
        rig.advance(1);
        let again = rig.post_with_key(operation, &path, Value::Null).await;
        assert_eq!((first.assert_status(status).status, &first.body), (again.status, &again.body));
    }
    rig.post_with_key("r", "/v1/reset", json!({"key": "a"})).await.assert_status(204);
    rig.reserve(json!({"keys": ["a"], "cost": {"tokens": 9}})).await.assert_status(201);
    let again = rig.post_with_key("r", "/v1/reset", json!({"key": "a"})).await;
    assert_eq!(
        (again.assert_status(204).header("idempotency-replayed"), rig.held("a")),
        ("true", 9)
    );
}

#[tokio::test]
async fn idempotency_key_with_another_request_is_refused() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    rig.post_with_key("k", "/v1/reserve", json!({"keys": ["a"]})).await.assert_status(201);
    let other = rig.post_with_key("k", "/v1/reserve", json!({"keys": ["a"], "wait_ms": 1})).await;
    other.assert_problem(422, "idempotency_key_reused");
    assert_eq!(rig.used("a"), 1);
    // Keys are scoped by path.
    let id = rig.open_reservation("a").await;
    rig.post_with_key("k", &format!("/v1/reservations/{id}/release"), Value::Null)
        .await
        .assert_status(200);
}

#[tokio::test]
async fn refused_request_can_retry_with_same_idempotency_key() {
    let rig = Rig::start("quotas: {a: {rpm: 1}}").await;
    rig.open_reservation("a").await;
    let request = json!({"keys": ["a"]});
    rig.post_with_key("k", "/v1/reserve", request.clone())
        .await
        .assert_problem(429, "rpm_exceeded");
    rig.post_with_key("k", "/v1/reserve", json!({"keys": []})).await.assert_problem(400, "invalid");
    rig.advance(60);
    rig.post_with_key("k", "/v1/reserve", request).await.assert_status(201);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_conflict() {
    let rig = Rig::start("quotas: {a: {rpm: 1}}").await;
    rig.open_reservation("a").await;
    let request = json!({"keys": ["a"], "wait_ms": 120_000});
    let (first, second): (Response, Response) =
        tokio::join!(rig.post_with_key("k", "/v1/reserve", request.clone()), async {
            rig.wait_until_waiting("a", 1).await;
            let second = rig.post_with_key("k", "/v1/reserve", request.clone()).await;
            rig.advance(60);
            second
        });
    second.assert_problem(409, "in_flight");
    assert_eq!(second.header("retry-after"), "1");
    let third = rig.post_with_key("k", "/v1/reserve", request).await;
    assert_eq!((first.assert_status(201).status, &first.body), (third.status, &third.body));
}

#[tokio::test]
async fn response_is_stored_for_the_reservation_lifetime() {
    let rig = Rig::start("quotas: {a: {rpm: 100}}, serve: {reservation_ttl: 10s}").await;
    let request = json!({"keys": ["a"], "ttl_ms": 30_000});
    let first = rig.post_with_key("k", "/v1/reserve", request.clone()).await;
    rig.advance(29);
    assert_eq!(
        rig.post_with_key("k", "/v1/reserve", request.clone()).await.body,
        first.assert_status(201).body
    );
    rig.advance(1);
    assert_ne!(
        rig.post_with_key("k", "/v1/reserve", request).await.assert_status(201).body,
        first.body
    );
}

#[tokio::test]
async fn invalid_idempotency_key_is_refused() {
    let rig = Rig::start("").await;
    let request = || rig.request("POST", "/v1/reserve").bearer_auth(ADMIN);
    for key in ["", "a b", &"k".repeat(256)] {
        send(request().header("idempotency-key", key))
            .await
            .assert_problem(400, "bad_idempotency_key");
    }
    let twice = request().header("idempotency-key", "a").header("idempotency-key", "b");
    send(twice).await.assert_problem(400, "bad_idempotency_key");
}

#[tokio::test]
async fn full_response_cache_refuses_new_keys() {
    let rig = Rig::start("serve: {reservation_ttl: 10s}").await;
    // Long responses fill the cache faster.
    let limits: Vec<Value> = (1..=60)
        .map(
            |n| json!({"dimension": "requests", "limit": 1_000_000 + n, "window": format!("{n}s")}),
        )
        .collect();
    let body = json!({"limits": limits});
    let set = async |key: &str| {
        let put = rig.request("PUT", "/v1/quotas/a").bearer_auth(ADMIN);
        send(with_json(put.header("idempotency-key", key), &body)).await
    };
    let mut kept = 0;
    let refused = loop {
        match set(&format!("k-{kept}")).await {
            Response { status: 200 | 201, .. } => kept += 1,
            refused => break refused,
        }
    };
    assert!(kept > 100, "{kept}");
    refused.assert_problem(503, "too_many_idempotency_keys");
    assert_eq!(refused.header("retry-after"), "1");
    // Stored responses are replayed, and the responses to clients are in another cache.
    assert_eq!(set("k-0").await.header("idempotency-replayed"), "true");
    rig.post_with_key("k-0", "/v1/reserve", json!({"keys": ["b"]})).await.assert_status(201);
    rig.advance(10);
    for key in [format!("k-{kept}"), "k-0".to_owned()] {
        let anew = set(&key).await;
        assert!(anew.assert_status(200).headers.get("idempotency-replayed").is_none());
    }
}
