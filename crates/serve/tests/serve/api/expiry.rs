use serde_json::{Value, json};

use super::Rig;

#[tokio::test]
async fn expired_reservation_is_charged_as_reserved() {
    let rig = Rig::start("quotas: {a: {tpm: 100, concurrency: 1}}").await;
    let first = json!({"keys": ["a"], "cost": {"tokens": 30}, "ttl_ms": 10_000});
    let first = rig.reserve(first).await.assert_status(201).clone();
    let id = first.body["id"].as_str().unwrap();
    let request = json!({"keys": ["a"], "wait_ms": 60_000});
    let (second, ()) = tokio::join!(rig.reserve(request), async {
        rig.wait_until_waiting("a", 1).await;
        rig.advance(10);
    });
    assert_eq!(second.assert_status(201).body["granted_at"], "2026-01-01T00:00:10.000000000Z");
    assert_eq!(rig.used("a"), 30);
    rig.advance(1);
    let late = rig.settle(id, json!({"tokens": 1})).await;
    let detail = late.assert_problem(410, "expired");
    assert!(detail.contains("expired at 2026-01-01T00:00:10.000000000Z"), "{detail}");
    assert!(detail.contains("was charged as reserved"), "{detail}");
    rig.release(id).await.assert_problem(410, "expired");
    rig.post(&format!("/v1/reservations/{id}/renew"), Value::Null)
        .await
        .assert_problem(410, "expired");
    let found = rig.get(&format!("/v1/reservations/{id}")).await;
    assert_eq!(
        (&found.body["state"], &found.body["charged"]["tokens"]),
        (&json!("expired"), &json!(30))
    );
}

#[tokio::test]
async fn reservation_is_open_until_the_exact_expiry() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    let (one, other) = (rig.open_reservation("a").await, rig.open_reservation("a").await);
    rig.clock.advance(std::time::Duration::from_nanos(59_999_999_999));
    rig.settle(&one, json!({})).await.assert_status(200);
    rig.clock.advance(std::time::Duration::from_nanos(1));
    rig.settle(&other, json!({})).await.assert_problem(410, "expired");
}

#[tokio::test]
async fn renewed_reservation_expires_later() {
    let rig = Rig::start("quotas: {a: {concurrency: 1}}, serve: {reservation_ttl: 10s}").await;
    let id = rig.open_reservation("a").await;
    let renew = format!("/v1/reservations/{id}/renew");
    for _ in 0..5 {
        rig.advance(9);
        rig.post(&renew, Value::Null).await.assert_status(200);
    }
    let renewed = rig.post(&renew, json!({"ttl_ms": 30_000})).await;
    assert_eq!(renewed.assert_status(200).body["expires_at"], "2026-01-01T00:01:15.000000000Z");
    assert_eq!(renewed.body["granted_at"], "2026-01-01T00:00:00.000000000Z");
    rig.advance(29);
    assert_eq!(rig.held("a"), 1);
    rig.advance(1);
    rig.open_reservation("a").await;
    rig.settle(&id, json!({})).await.assert_problem(410, "expired");
}

#[tokio::test]
async fn ended_reservation_is_forgotten_after_the_ttl() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}, serve: {reservation_ttl: 10s}").await;
    let id = rig.open_reservation("a").await;
    rig.settle(&id, json!({})).await.assert_status(200);
    rig.advance(9);
    rig.settle(&id, json!({})).await.assert_problem(409, "already_settled");
    rig.advance(1);
    rig.settle(&id, json!({})).await.assert_problem(404, "unknown_reservation");
}
