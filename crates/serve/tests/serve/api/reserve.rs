use serde_json::{Value, json};

use super::Rig;

#[tokio::test]
async fn reserve_response_has_all_fields() {
    let images = "{dimension: images, limit: 9, window: 1m}";
    let rig = Rig::start(&format!(
        "quotas: {{a: {{rpm: 10, tpm: 1000, usd_per_day: 1, limits: [{images}]}}}}"
    ))
    .await;
    let cost = json!({"requests": 2, "tokens": 300, "usd": 0.25, "custom": {"images": 4}});
    let request = json!({"keys": ["a"], "cost": cost, "metadata": {"user": "u-7"}, "ttl_ms": 5000});
    let response = rig.reserve(request).await;
    let id = response.assert_status(201).body["id"].as_str().unwrap().to_owned();
    assert_eq!(
        response.body,
        json!({
            "id": id,
            "state": "open",
            "keys": ["a"],
            "cost": {"requests": 2, "tokens": 300, "input_tokens": 0, "output_tokens": 0,
                "usd": 0.25, "custom": {"images": 4}},
            "granted_at": "2026-01-01T00:00:00.000000000Z",
            "expires_at": "2026-01-01T00:00:05.000000000Z",
            "ttl_ms": 5000,
            "metadata": {"user": "u-7"},
        })
    );
    assert_eq!(response.header("location"), format!("/v1/reservations/{id}"));
    assert!(response.header("ratelimit").contains("r=8"), "{response:?}");
    assert!(response.header("ratelimit-policy").contains("q=1000"), "{response:?}");
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(response.header("x-content-type-options"), "nosniff");
    let found = rig.get(response.header("location")).await;
    assert_eq!((found.status, found.body), (200, response.body.clone()));
    let rest = json!({"keys": ["a"], "cost": {"usd": 0.75}});
    rig.reserve(rest.clone()).await.assert_status(201);
    let stats = rig.get("/v1/stats/a").await.body;
    let money = stats["limits"].as_array().unwrap().iter().find(|one| one["dimension"] == "usd");
    assert_eq!(money.unwrap()["held"], 1_000_000);
}

#[tokio::test]
async fn cost_without_a_limit_is_refused() {
    let rig = Rig::start("quotas: {a: {tpm: 1000}, b: {itpm: 1000, otpm: 1000}}").await;
    for (key, cost, dimension) in [
        ("a", json!({"tokens": 3, "custom": {"imagse": 4}}), "imagse"),
        ("a", json!({"input_tokens": 3}), "input_tokens"),
        ("b", json!({"tokens": 3}), "tokens"),
    ] {
        let refused = rig.reserve(json!({"keys": [key], "cost": cost})).await;
        let detail = refused.assert_problem(422, "missing_limit");
        let start = format!("{key}: no limit counts {dimension}; add such a limit");
        assert!(detail.starts_with(&start), "{detail}");
        assert_eq!(rig.used(key), 0);
    }
}

#[tokio::test]
async fn keys_are_charged_all_or_none() {
    let rig = Rig::start("quotas: {tenant: {rpm: 5}, model: {rpm: 2}}").await;
    let both = json!({"keys": ["tenant", "model"]});
    rig.reserve(both.clone()).await.assert_status(201);
    rig.reserve(both.clone()).await.assert_status(201);
    let refused = rig.reserve(both).await;
    let detail = refused.assert_problem(429, "rpm_exceeded");
    assert!(
        detail.starts_with(
            "model: requests per minute exceeded (needs 1, limit 2); retry in 60.000 s"
        ),
        "{detail}"
    );
    assert_eq!((rig.used("tenant"), rig.used("model")), (2, 2));
}

#[tokio::test]
async fn refusal_has_retry_after() {
    let rig = Rig::start("quotas: {a: {rpm: 1}}").await;
    rig.open_reservation("a").await;
    rig.advance(20);
    let refused = rig.reserve(json!({"keys": ["a"]})).await;
    refused.assert_problem(429, "rpm_exceeded");
    assert_eq!(refused.header("retry-after"), "40");
    assert_eq!((&refused.body["key"], &refused.body["retry_after"]), (&json!("a"), &json!(40)));
    assert!(refused.header("ratelimit").contains("r=0;t=40"), "{refused:?}");
    rig.advance(40);
    rig.open_reservation("a").await;
}

#[tokio::test]
async fn impossible_request_is_refused_without_retry_after() {
    let rig = Rig::start("quotas: {a: {tpm: 100}}, unknown_key: refuse").await;
    let request = json!({"keys": ["a"], "cost": {"tokens": 101}, "wait_ms": 3_600_000});
    let refused = rig.reserve(request).await;
    let detail = refused.assert_problem(429, "exceeds_capacity");
    assert!(detail.contains("needs 101 tokens, the limit allows at most 100; make"), "{detail}");
    assert!(refused.headers.get("retry-after").is_none());
    let unknown = rig.reserve(json!({"keys": ["b"], "wait_ms": 5})).await;
    assert!(unknown.assert_problem(429, "unknown_model").contains("set a quota"));
}

#[tokio::test]
async fn priority_and_flow_order_waiting_reservations() {
    let rig = Rig::start("quotas: {a: {concurrency: 1}}").await;
    let id = rig.open_reservation("a").await;
    let waiting = |n: usize, more: Value| {
        let rig = &rig;
        async move {
            rig.wait_until_waiting("a", n).await;
            let mut request = json!({"keys": ["a"], "wait_ms": 600_000});
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let response = rig.reserve(request).await;
            response.assert_status(201);
            // The number of requests that still wait tells the position.
            let left = rig.limiter.stats("a").waiting;
            rig.release(response.body["id"].as_str().unwrap()).await.assert_status(200);
            left
        }
    };
    let release = async {
        rig.wait_until_waiting("a", 4).await;
        rig.release(&id).await.assert_status(200);
    };
    let (batch, greedy, other, chat, _) = tokio::join!(
        waiting(0, json!({"priority": "batch"})),
        waiting(1, json!({"flow": "user:1"})),
        waiting(2, json!({"flow": "user:2", "priority": 0})),
        waiting(3, json!({"priority": "interactive"})),
        release,
    );
    assert_eq!((chat, greedy, other, batch), (3, 2, 1, 0));
    for (field, value) in
        [("priority", json!("urgent")), ("priority", json!(128)), ("flow", json!(""))]
    {
        let refused = rig.reserve(json!({"keys": ["a"], field: value})).await;
        assert!(refused.status == 400 || refused.status == 422, "{refused:?}");
    }
}

#[tokio::test]
async fn waiting_requests_are_granted_in_order() {
    let rig = Rig::start("quotas: {a: {rpm: 1}}").await;
    rig.open_reservation("a").await;
    let request =
        |n: u32| json!({"keys": ["a"], "wait_ms": 600_000, "metadata": {"n": n.to_string()}});
    let (first, second, third) = tokio::join!(
        rig.reserve(request(1)),
        async {
            rig.wait_until_waiting("a", 1).await;
            rig.reserve(request(2)).await
        },
        async {
            rig.wait_until_waiting("a", 2).await;
            let refused = rig.reserve(json!({"keys": ["a"]})).await;
            for left in [1, 0] {
                rig.advance(60);
                rig.wait_until_waiting("a", left).await;
            }
            refused
        }
    );
    third.assert_problem(429, "rpm_exceeded");
    assert_eq!(first.assert_status(201).body["granted_at"], "2026-01-01T00:01:00.000000000Z");
    assert_eq!(second.assert_status(201).body["granted_at"], "2026-01-01T00:02:00.000000000Z");
}

#[tokio::test]
async fn wait_is_bounded_by_the_servers_max_wait() {
    // 4 minutes by default.
    for (waiting, seconds) in [(", waiting: {max_wait: 5s}", 5), ("", 240)] {
        let rig = Rig::start(&format!("quotas: {{a: {{concurrency: 1}}}}{waiting}")).await;
        let held = rig.reserve(json!({"keys": ["a"], "ttl_ms": 600_000})).await;
        let held = held.assert_status(201).body["id"].as_str().unwrap();
        let request = json!({"keys": ["a"], "wait_ms": 600_000});
        let (refused, ()) = tokio::join!(rig.reserve(request), async {
            rig.wait_until_waiting("a", 1).await;
            rig.advance(seconds - 1);
            assert_eq!(rig.limiter.stats("a").waiting, 1);
            rig.advance(1);
        });
        refused.assert_problem(429, "concurrency_exceeded");
        assert_eq!(refused.header("retry-after"), "1");
        rig.release(held).await.assert_status(200);
        rig.open_reservation("a").await;
    }
}

#[tokio::test]
async fn full_queue_and_full_server_are_refused() {
    let rig = Rig::start(
        "quotas: {a: {rpm: 1}}, waiting: {max_waiting: 1}, serve: {bounds: {reservations: 6}}",
    )
    .await;
    rig.open_reservation("a").await;
    let waits = json!({"keys": ["a"], "wait_ms": 60_000});
    let (granted, ()) = tokio::join!(rig.reserve(waits.clone()), async {
        rig.wait_until_waiting("a", 1).await;
        let full = rig.reserve(waits.clone()).await;
        assert!(
            full.assert_problem(429, "queue_full")
                .contains("the wait queue is full with 1 requests")
        );
        // Two reservations are open or waited for.
        rig.open_reservation("b").await;
        let refused = rig.reserve(json!({"keys": ["b"]})).await;
        refused.assert_problem(503, "too_many_reservations");
        assert_eq!(refused.header("retry-after"), "1");
        rig.advance(60);
    });
    // The first two have expired by now.
    granted.assert_status(201);
    rig.open_reservation("b").await;
}

#[tokio::test]
async fn waiting_requests_are_bounded() {
    let rig = Rig::start(
        "quotas: {a: {concurrency: 1}}, serve: {bounds: {waiting: 1}, reservation_ttl: 1h}",
    )
    .await;
    let held = rig.open_reservation("a").await;
    let waits = json!({"keys": ["a"], "wait_ms": 60_000});
    let (granted, ()) = tokio::join!(rig.reserve(waits.clone()), async {
        rig.wait_until_waiting("a", 1).await;
        rig.reserve(waits.clone()).await.assert_problem(503, "too_many_waiting");
        rig.reserve(json!({"keys": ["a"]})).await.assert_problem(429, "concurrency_exceeded");
        rig.wait_until_waiting("a", 1).await;
        rig.release(&held).await.assert_status(200);
    });
    granted.assert_status(201);
}

#[tokio::test]
async fn request_without_wait_behind_waiters_is_refused() {
    let rig = Rig::start("quotas: {a: {tpm: 100}}").await;
    let request = |tokens: u64, wait: u64| json!({"keys": ["a"], "cost": {"tokens": tokens}, "wait_ms": wait});
    let held = rig.reserve(request(50, 0)).await;
    let (granted, ()) = tokio::join!(rig.reserve(request(80, 60_000)), async {
        rig.wait_until_waiting("a", 1).await;
        rig.reserve(request(10, 0)).await.assert_problem(429, "others_waiting");
        rig.release(held.assert_status(201).body["id"].as_str().unwrap()).await.assert_status(200);
    });
    granted.assert_status(201);
}
