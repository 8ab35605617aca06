use serde_json::{Value, json};

use super::{ADMIN, Response, Rig, send, with};

#[tokio::test]
async fn repeated_idempotency_key_replays_the_response() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    let request = json!({"keys": ["a"]});
    let first = rig.keyed("\"k-1\"", "/v1/reserve", request.clone()).await;
    first.is(201);
    assert!(first.headers.get("idempotency-replayed").is_none());
    // With quotes, as in the draft, or without.
    for key in ["\"k-1\"", "k-1"] {
        rig.advance(1);
        let again = rig.keyed(key, "/v1/reserve", request.clone()).await;
        assert_eq!((again.status, &again.body), (201, &first.body));
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(again.header("location"), first.header("location"));
        assert_eq!(again.header("cache-control"), "no-store");
    }
    assert_eq!(rig.used("a"), 1);
    rig.keyed("k-2", "/v1/reserve", request).await.is(201);
    assert_eq!(rig.used("a"), 2);
}

#[tokio::test]
async fn settlement_retry_replays_the_response() {
    let rig = Rig::start("quotas: {a: {tpm: 100}}").await;
    let id = rig.reserved("a").await;
    let path = format!("/v1/reservations/{id}/settle");
    let body = json!({"cost": {"tokens": 7}});
    let first = rig.keyed("s", &path, body.clone()).await;
    let again = rig.keyed("s", &path, body.clone()).await;
    assert_eq!((first.is(200).status, &first.body), (again.status, &again.body));
    assert_eq!(rig.used("a"), 7);
    rig.post(&path, body).await.fails(409, "already_settled");
    // A release, a renewal and a reset, too.
    let id = rig.reserved("a").await;
    for (what, status) in [("renew", 200), ("release", 200)] {
        let path = format!("/v1/reservations/{id}/{what}");
        let first = rig.keyed(what, &path, Value::Null).await;
        rig.advance(1);
        let again = rig.keyed(what, &path, Value::Null).await;
        assert_eq!((first.is(status).status, &first.body), (again.status, &again.body));
    }
    rig.keyed("r", "/v1/reset", json!({"key": "a"})).await.is(204);
    rig.reserve(json!({"keys": ["a"], "cost": {"tokens": 9}})).await.is(201);
    let again = rig.keyed("r", "/v1/reset", json!({"key": "a"})).await;
    assert_eq!((again.is(204).header("idempotency-replayed"), rig.held("a")), ("true", 9));
}

#[tokio::test]
async fn idempotency_key_with_another_request_is_refused() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    rig.keyed("k", "/v1/reserve", json!({"keys": ["a"]})).await.is(201);
    let other = rig.keyed("k", "/v1/reserve", json!({"keys": ["a"], "wait_ms": 1})).await;
    other.fails(422, "idempotency_key_reused");
    assert_eq!(rig.used("a"), 1);
    // Keys are scoped by path.
    let id = rig.reserved("a").await;
    rig.keyed("k", &format!("/v1/reservations/{id}/release"), Value::Null).await.is(200);
}

#[tokio::test]
async fn refused_request_can_retry_with_same_idempotency_key() {
    let rig = Rig::start("quotas: {a: {rpm: 1}}").await;
    rig.reserved("a").await;
    let request = json!({"keys": ["a"]});
    rig.keyed("k", "/v1/reserve", request.clone()).await.fails(429, "rpm_exceeded");
    rig.keyed("k", "/v1/reserve", json!({"keys": []})).await.fails(400, "invalid");
    rig.advance(60);
    rig.keyed("k", "/v1/reserve", request).await.is(201);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_conflict() {
    let rig = Rig::start("quotas: {a: {rpm: 1}}").await;
    rig.reserved("a").await;
    let request = json!({"keys": ["a"], "wait_ms": 120_000});
    let (first, second): (Response, Response) =
        tokio::join!(rig.keyed("k", "/v1/reserve", request.clone()), async {
            rig.until_waiting("a", 1).await;
            let second = rig.keyed("k", "/v1/reserve", request.clone()).await;
            rig.advance(60);
            second
        });
    second.fails(409, "in_flight");
    assert_eq!(second.header("retry-after"), "1");
    let third = rig.keyed("k", "/v1/reserve", request).await;
    assert_eq!((first.is(201).status, &first.body), (third.status, &third.body));
}

#[tokio::test]
async fn response_is_stored_for_the_reservation_lifetime() {
    let rig = Rig::start("quotas: {a: {rpm: 100}}, serve: {reservation_ttl: 10s}").await;
    let request = json!({"keys": ["a"], "ttl_ms": 30_000});
    let first = rig.keyed("k", "/v1/reserve", request.clone()).await;
    rig.advance(29);
    assert_eq!(rig.keyed("k", "/v1/reserve", request.clone()).await.body, first.is(201).body);
    rig.advance(1);
    assert_ne!(rig.keyed("k", "/v1/reserve", request).await.is(201).body, first.body);
}

#[tokio::test]
async fn invalid_idempotency_key_is_refused() {
    let rig = Rig::start("").await;
    let request = || rig.request("POST", "/v1/reserve").bearer_auth(ADMIN);
    for key in ["", "a b", &"k".repeat(256)] {
        send(request().header("idempotency-key", key)).await.fails(400, "bad_idempotency_key");
    }
    let twice = request().header("idempotency-key", "a").header("idempotency-key", "b");
    send(twice).await.fails(400, "bad_idempotency_key");
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
        send(with(put.header("idempotency-key", key), &body)).await
    };
    let mut kept = 0;
    let refused = loop {
        match set(&format!("k-{kept}")).await {
            Response { status: 200 | 201, .. } => kept += 1,
            refused => break refused,
        }
    };
    assert!(kept > 100, "{kept}");
    refused.fails(503, "too_many_idempotency_keys");
    assert_eq!(refused.header("retry-after"), "1");
    // Stored responses are replayed, and clients have a cache of their own.
    assert_eq!(set("k-0").await.header("idempotency-replayed"), "true");
    rig.keyed("k-0", "/v1/reserve", json!({"keys": ["b"]})).await.is(201);
    rig.advance(10);
    for key in [format!("k-{kept}"), "k-0".to_owned()] {
        let anew = set(&key).await;
        assert!(anew.is(200).headers.get("idempotency-replayed").is_none());
    }
}
