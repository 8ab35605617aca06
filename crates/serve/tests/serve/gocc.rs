//! GoCC's own tests over HTTP, and tests of its exact protocol.

use paceline_serve::Tokens;
use reqwest::Method;

use super::rig::{HttpReply, Rig, http1, http2, until};

#[tokio::test]
async fn requests_are_granted_up_to_the_limit() {
    let rig = Rig::new("max_requests: 3").await;
    assert_eq!(rig.count_granted(10, "/rate/k").await, 3);
    rig.advance_millis(999);
    assert_eq!(rig.post("/rate/k").await.status, 429);
    rig.advance_millis(1);
    assert_eq!(rig.count_granted(10, "/rate/k").await, 3);
}

#[tokio::test]
async fn waiting_requests_queue_up_to_the_bound() {
    let rig = Rig::new("max_requests: 2, max_requests_in_queue: 3").await;
    assert_eq!(rig.count_granted(2, "/rate/k?canWait=true").await, 2);
    let mut waiters = Vec::new();
    for _ in 0..3 {
        waiters.push(rig.spawn_waiter("k", "/rate/k?canWait=true").await);
    }
    let denied = rig.post("/rate/k?canWait=true").await;
    assert_eq!((denied.status, denied.body.as_str()), (429, ""));
    rig.advance_millis(1000);
    until(|| rig.waiting("k") == 1).await;
    let late = waiters.pop().unwrap();
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().status, 200);
    }
    assert!(!late.is_finished(), "two per window");
    rig.advance_millis(1000);
    assert_eq!(late.await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_waiting_requests_are_counted_exactly() {
    let rig = Rig::new("max_requests: 1000, max_requests_in_queue: 1000").await;
    let client = http2();
    let url = rig.url("/rate/k?canWait=1");
    let send = || tokio::spawn(HttpReply::of(client.post(&url)));
    let first: Vec<_> = (0..1000).map(|_| send()).collect();
    for reply in first {
        assert_eq!(reply.await.unwrap().status, 200);
    }
    let waiters: Vec<_> = (0..900).map(|_| send()).collect();
    until(|| rig.waiting("k") == 900).await;
    // Through another client: an HTTP/2 connection has at most a thousand streams.
    let other = http2();
    let more: Vec<_> = (0..105).map(|_| tokio::spawn(HttpReply::of(other.post(&url)))).collect();
    until(|| more.iter().filter(|reply| reply.is_finished()).count() == 5).await;
    assert_eq!(rig.waiting("k"), 1000);
    rig.advance_millis(1000);
    let mut statuses = Vec::new();
    for waiter in waiters.into_iter().chain(more) {
        statuses.push(waiter.await.unwrap().status);
    }
    let count = |status| statuses.iter().filter(|actual| **actual == status).count();
    assert_eq!((count(200), count(429)), (1000, 5));
}

#[tokio::test]
async fn priority_header_decides_the_order_of_waiting_requests() {
    let rig = Rig::new("max_requests: 1, priority_header: x-priority").await;
    let url = rig.url("/rate/k?canWait=true");
    let send = |priority| HttpReply::of(http2().post(&url).header("x-priority", priority));
    assert_eq!(send("normal").await.status, 200);
    let mut waiters = Vec::new();
    for (waiting, priority) in ["batch", "normal", "interactive"].into_iter().enumerate() {
        waiters.push(tokio::spawn(send(priority)));
        until(|| rig.waiting("k") == waiting + 1).await;
    }
    for waiting in (0..3).rev() {
        rig.advance_millis(1_000);
        assert_eq!(waiters.pop().unwrap().await.unwrap().status, 200);
        assert_eq!(rig.waiting("k"), waiting);
    }
    assert_eq!(send("urgent").await.status, 400);
}

#[tokio::test]
async fn waiting_request_is_delayed_until_the_next_window() {
    let rig = Rig::new("max_requests: 1").await;
    assert_eq!(rig.post("/rate/k").await.status, 200);
    let waiter = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    for _ in 0..2 {
        rig.advance_millis(499);
        assert_eq!(rig.get("/healthz").await.status, 200);
        assert_eq!((rig.waiting("k"), waiter.is_finished()), (1, false));
    }
    rig.advance_millis(2);
    assert_eq!(waiter.await.unwrap().status, 200);
}

#[tokio::test]
async fn request_sets_own_rate_if_allowed() {
    let rig =
        Rig::new("max_requests: 2, requests_can_set_rate: true, requests_can_mod_queue: true")
            .await;
    assert_eq!(rig.count_granted(9, "/rate/k?maxRequests=5").await, 5);
    assert_eq!(rig.count_granted(9, "/rate/k").await, 0, "the rate applies only to its request");
    assert_eq!(rig.count_granted(9, "/rate/k?maxRequests=6").await, 1);
    assert_eq!(rig.count_granted(9, "/rate/l").await, 2);
    assert_eq!(rig.post("/rate/l?canWait=1&maxRequestsInQueue=0").await.status, 429);
    let waiter = rig.spawn_waiter("l", "/rate/l?canWait=1").await;
    assert_eq!(rig.post("/rate/l?canWait=1&maxRequestsInQueue=1").await.status, 429);
    let second = rig.spawn_waiter("l", "/rate/l?canWait=1&maxRequestsInQueue=2").await;
    rig.advance_millis(1000);
    assert_eq!([waiter.await.unwrap().status, second.await.unwrap().status], [200, 200]);
}

#[tokio::test]
async fn keys_are_independent() {
    let rig = Rig::new("max_requests: 1").await;
    for key in ["a", "b", "a%2Fb", "%C3%BC", "a.b"] {
        assert_eq!(rig.count_granted(2, &format!("/rate/{key}")).await, 1, "{key}");
    }
    assert_eq!(rig.post("/rate/%20a%20").await.status, 429, "spaces around a key are ignored");
}

#[tokio::test]
async fn limits_of_matching_patterns_merge_in_order() {
    let rig = Rig::new(
        "max_requests: 9, keys: [
        {key_pattern: user, key_pattern_is_regex: true, max_requests_per_window: 2},
        {key_pattern: user-1, max_requests_per_window: 3, window_millis: 5000},
        {key_pattern: 'user-.$', key_pattern_is_regex: true, max_requests_in_queue: 0}]",
    )
    .await;
    for (key, most) in [("other", 9), ("my-user", 2), ("user-1", 3), ("user-12", 2)] {
        assert_eq!(rig.count_granted(10, &format!("/rate/{key}")).await, most, "{key}");
    }
    rig.advance_millis(4999);
    assert_eq!(rig.count_granted(10, "/rate/user-1").await, 0);
    rig.advance_millis(1);
    assert_eq!(rig.count_granted(10, "/rate/user-1").await, 3);
    assert_eq!(rig.post("/rate/user-1?canWait=true").await.status, 429, "the key has no queue");
}

#[tokio::test]
async fn queue_length_is_set_per_key() {
    let text = "waiting: {max_waiting: 1}\n\
        serve: {listen: '127.0.0.1:0', max_requests: 1, max_requests_in_queue: 3}";
    let rig = Rig::start(text, Tokens::default()).await;
    rig.post("/rate/k").await;
    let mut waiters = Vec::new();
    for _ in 0..3 {
        waiters.push(rig.spawn_waiter("k", "/rate/k?canWait=true").await);
    }
    assert_eq!(rig.waiting("k"), 3);
    assert_eq!(rig.post("/rate/k?canWait=true").await.status, 429);
}

#[tokio::test]
async fn head_and_options_consume_no_quota() {
    let rig = Rig::new("max_requests: 1").await;
    let head = rig.send(Method::HEAD, "/rate/k").await;
    assert_eq!((head.status, head.body.as_str()), (405, ""));
    assert_eq!(rig.count_granted(2, "/rate/k").await, 1);
}

#[tokio::test]
async fn key_with_a_quota_uses_the_quota() {
    let text = "quotas: {gpt-4o: {rpm: 4}}\nserve: {listen: '127.0.0.1:0', max_requests: 2}";
    let rig = Rig::start(text, Tokens::default()).await;
    assert_eq!(rig.count_granted(9, "/rate/gpt-4o").await, 4);
    assert_eq!(rig.count_granted(9, "/rate/other").await, 2);
}

#[tokio::test]
async fn text_responses_match_gocc() {
    let rig = Rig::new("max_requests: 1").await;
    let granted = rig.get("/rate/k").await;
    assert_eq!(
        (granted.status, granted.header("content-type")),
        (200, "text/plain; charset=UTF-8")
    );
    assert!(!granted.body.is_empty() && granted.body.is_ascii());
    let denied = rig.get("/rate/k").await;
    assert_eq!((denied.status, denied.body.as_str()), (429, ""));
    assert_eq!(denied.header("retry-after"), "1");
    assert!(denied.header("ratelimit").contains(";r=0;t=1"), "{denied:?}");
    assert!(denied.header("ratelimit-policy").contains(";q=1;w=1"), "{denied:?}");
    for (method, path, status, body) in [
        (Method::POST, "/rate/%20", 400, "empty key provided"),
        (Method::POST, "/rate/", 400, "empty key provided"),
        (Method::POST, "/rate/k?canWait=maybe", 400, "failed to parse canWait query parameter"),
        (Method::POST, "/rate/k?maxRequests=5", 403, "maxRequests query parameter is disabled"),
        (Method::DELETE, "/rate/k/%20", 400, "empty id provided"),
        (Method::DELETE, "/rate/k/", 400, "empty id provided"),
        (Method::GET, "/debug/unknown", 404, "Key not found"),
        (Method::GET, "/healthz", 200, "OK"),
    ] {
        let reply = rig.send(method, path).await;
        assert_eq!((reply.status, reply.body.as_str()), (status, body), "{path}");
    }
    assert_eq!(rig.send(Method::PUT, "/rate/k").await.status, 405);
    assert_eq!(rig.post(&format!("/rate/{}", "k".repeat(257))).await.status, 400);
}

#[tokio::test]
async fn json_is_sent_if_preferred() {
    let rig = Rig::new("max_requests: 1").await;
    let client = http1();
    let send =
        |path: &str| HttpReply::of(client.post(rig.url(path)).header("accept", "application/json"));
    let granted = send("/rate/k").await.json();
    let id = granted["request_id"].as_str().unwrap();
    let denied = send("/rate/k").await;
    assert_eq!(denied.header("content-type"), "application/problem+json");
    assert_eq!((denied.status, denied.json()["status"].as_u64()), (429, Some(429)));
    let wrong = send("/rate/k?maxRequests=5").await;
    assert_eq!((wrong.status, wrong.json()["code"].as_str()), (403, Some("disabled")));
    assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 200);
    assert_eq!(rig.post("/rate/k").await.status, 200);
}

#[tokio::test]
async fn text_is_sent_by_default() {
    let rig = Rig::new("max_requests: 9").await;
    let client = http1();
    for accepted in ["application/json, text/plain, */*", "application/json;q=0, */*"] {
        let granted =
            HttpReply::of(client.post(rig.url("/rate/k")).header("accept", accepted)).await;
        assert_eq!(granted.header("content-type"), "text/plain; charset=UTF-8", "{accepted}");
    }
}

#[tokio::test]
async fn debug_lists_a_key_without_a_request_limit() {
    let text = "quotas: {k: {tpm: 100}}\nmargin: {percent: 0}\nserve: {listen: '127.0.0.1:0'}";
    let rig = Rig::start(text, Tokens::default()).await;
    rig.post("/rate/k?tokens=100").await;
    let waiter = rig.spawn_waiter("k", "/rate/k?tokens=1&canWait=true").await;
    let k = rig.get("/debug/k").await.json();
    assert_eq!(
        (k["NumWaiting"].as_u64(), k["Config"]["WindowMillis"].as_u64()),
        (Some(1), Some(60_000))
    );
    waiter.abort();
}

#[tokio::test]
async fn debug_matches_gocc() {
    let rig = Rig::new("max_requests: 2, max_requests_in_queue: 7, window_millis: 500").await;
    assert_eq!(rig.count_granted(5, "/rate/x").await, 2);
    let waiter = rig.spawn_waiter("x", "/rate/x?canWait=true").await;
    rig.post("/rate/y").await;
    let x = serde_json::json!({
        "Key": "x",
        "Config": {"WindowMillis": 500, "MaxRequestsPerWindow": 2, "MaxRequestsInQueue": 7},
        "NumApprovedThisWindow": 2, "NumDeniedThisWindow": 3, "NumWaiting": 1, "Found": true,
    });
    let one = rig.get("/debug/x").await;
    assert_eq!((one.json(), one.header("content-type")), (x.clone(), "application/json"));
    let all = rig.get("/debug").await.json();
    assert_eq!(all["Instances"]["x"], x);
    assert_eq!(all["Instances"]["y"]["NumApprovedThisWindow"], 1);
    rig.advance_millis(500);
    waiter.await.unwrap();
    rig.advance_millis(1499);
    assert_eq!(rig.get("/debug/x").await.json()["NumApprovedThisWindow"], 0);
    assert_eq!(rig.get("/debug/y").await.status, 404, "idle for three windows");
}
