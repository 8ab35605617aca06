use serde_json::{Value, json};

use super::Rig;

#[tokio::test]
async fn settled_reservation_is_charged_actual_cost() {
    let rig = Rig::start("quotas: {a: {tpm: 1000}}").await;
    let request = json!({"keys": ["a"], "cost": {"tokens": 900, "requests": 3}});
    let response = rig.reserve(request).await;
    let id = response.assert_status(201).body["id"].as_str().unwrap();
    assert_eq!((rig.used("a"), rig.held("a")), (0, 900));
    rig.advance(1);
    let settled = rig.settle(id, json!({"tokens": 200})).await;
    assert_eq!(
        settled.assert_status(200).body,
        json!({
            "id": id,
            "state": "settled",
            "granted_at": "2026-01-01T00:00:00.000000000Z",
            "ended_at": "2026-01-01T00:00:01.000000000Z",
            "charged": {"requests": 3, "tokens": 200, "input_tokens": 0, "output_tokens": 0},
        })
    );
    assert_eq!((rig.used("a"), rig.held("a")), (200, 0));
    assert_eq!(rig.get(&format!("/v1/reservations/{id}")).await.body, settled.body);
}

#[tokio::test]
async fn released_reservation_is_not_charged() {
    let rig = Rig::start("quotas: {a: {rpm: 1, concurrency: 1}}").await;
    let id = rig.open_reservation("a").await;
    let released = rig.release(&id).await;
    assert_eq!(released.assert_status(200).body["state"], "released");
    assert!(released.body.get("charged").is_none());
    assert_eq!((rig.used("a"), rig.held("a")), (0, 0));
    rig.open_reservation("a").await;
}

#[tokio::test]
async fn second_end_reports_the_first() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    let (settled, released) = (rig.open_reservation("a").await, rig.open_reservation("a").await);
    rig.settle(&settled, json!({})).await.assert_status(200);
    rig.release(&released).await.assert_status(200);
    for (id, code) in [(settled, "already_settled"), (released, "already_released")] {
        rig.advance(1);
        let again = rig.settle(&id, json!({"requests": 9})).await;
        let detail = again.assert_problem(409, code).to_owned();
        assert!(detail.ends_with("at 2026-01-01T00:00:00.000000000Z"), "{detail}");
        assert_eq!(rig.release(&id).await.assert_problem(409, code), detail);
        let renew = format!("/v1/reservations/{id}/renew");
        assert_eq!(rig.post(&renew, Value::Null).await.assert_problem(409, code), detail);
    }
    assert_eq!(rig.used("a"), 1);
}

#[tokio::test]
async fn unknown_reservation_is_not_found() {
    let rig = Rig::start("").await;
    for id in
        ["0123456789abcdef0123456789abcdef", "7", "%2e%2e%2f", "0123456789ABCDEF0123456789ABCDEF"]
    {
        rig.settle(id, json!({})).await.assert_problem(404, "unknown_reservation");
        rig.release(id).await.assert_problem(404, "unknown_reservation");
        rig.post(&format!("/v1/reservations/{id}/renew"), Value::Null)
            .await
            .assert_problem(404, "unknown_reservation");
        rig.get(&format!("/v1/reservations/{id}")).await.assert_problem(404, "unknown_reservation");
    }
}

#[tokio::test]
async fn settling_for_less_admits_waiting_requests() {
    let rig = Rig::start("quotas: {a: {tpm: 100}}").await;
    let request = |wait: u64| json!({"keys": ["a"], "cost": {"tokens": 80}, "wait_ms": wait});
    let first = rig.reserve(request(0)).await;
    let (second, ()) = tokio::join!(rig.reserve(request(60_000)), async {
        rig.wait_until_waiting("a", 1).await;
        let id = first.assert_status(201).body["id"].as_str().unwrap();
        rig.settle(id, json!({"tokens": 20})).await.assert_status(200);
    });
    second.assert_status(201);
    assert_eq!((rig.used("a"), rig.held("a")), (20, 80));
}

#[tokio::test]
async fn invalid_settlement_leaves_the_reservation_open() {
    let rig = Rig::start("quotas: {a: {rpm: 10}}").await;
    let id = rig.open_reservation("a").await;
    rig.settle(&id, json!({"custom": {"": 1}})).await.assert_problem(400, "invalid");
    rig.settle(&id, json!({"tokens": -1})).await.assert_problem(400, "bad_request");
    rig.post(&format!("/v1/reservations/{id}/settle"), json!({}))
        .await
        .assert_problem(400, "bad_request");
    rig.settle(&id, json!({})).await.assert_status(200);
}
