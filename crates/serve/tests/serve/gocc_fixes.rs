//! Bugs of GoCC that this server does not have.

use reqwest::Method;

use super::rig::{HttpReply, Rig, http1, http2, until};

#[tokio::test]
async fn delete_returns_an_active_grant_once() {
    let rig = Rig::new("max_requests: 3").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(rig.post("/rate/k").await.body);
    }
    let path = format!("/rate/k/{}", ids[0]);
    let returned = rig.delete(&path).await;
    assert_eq!((returned.status, returned.body.as_str()), (200, ""));
    assert_eq!(rig.count_granted(5, "/rate/k").await, 1);
    assert_eq!(rig.delete(&path).await.status, 404, "a second time");
    assert_eq!(rig.delete(&format!("/rate/l/{}", ids[1])).await.status, 404, "of another key");
    assert_eq!(rig.count_granted(5, "/rate/k").await, 0);
    rig.advance_millis(1000);
    assert_eq!(
        rig.delete(&format!("/rate/k/{}", ids[1])).await.status,
        404,
        "of an earlier window"
    );
    assert_eq!(rig.count_granted(5, "/rate/k").await, 3);
}

#[tokio::test]
async fn invalid_deletes_return_no_quota() {
    let rig = Rig::new("max_requests: 2").await;
    let id = rig.post("/rate/k").await.body;
    assert_eq!(rig.count_granted(5, "/rate/k").await, 1);
    for at in 0..1000 {
        let bogus = match at % 3 {
            0 => format!("{at}"),
            1 => format!("{at:x}-{id}"),
            _ => format!("{}{:x}", &id[..id.len() - 1], at % 16),
        };
        let status = rig.delete(&format!("/rate/k/{bogus}")).await.status;
        assert!(status == 404 || bogus == id, "{bogus}");
        if bogus != id {
            assert_eq!(status, 404);
        }
    }
    assert!(rig.count_granted(5, "/rate/k").await <= 1);
}

#[tokio::test]
async fn returned_grant_wakes_a_waiting_request() {
    let rig = Rig::new("max_requests: 1").await;
    let id = rig.post("/rate/k").await.body;
    let waiter = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 200);
    assert_eq!(waiter.await.unwrap().status, 200);
}

#[tokio::test]
async fn concurrency_is_released_by_return_or_expiry() {
    let text = "quotas: {k: {concurrency: 1}}\n\
        serve: {listen: '127.0.0.1:0', reservation_ttl: 5s}";
    let rig = Rig::start(text, Default::default()).await;
    let id = rig.post("/rate/k").await.body;
    assert_eq!(rig.post("/rate/k").await.status, 429);
    let waiter = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 200);
    assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 404);
    let id = waiter.await.unwrap().body;
    let waiter = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    rig.advance_millis(4999);
    rig.get("/healthz").await;
    assert!(!waiter.is_finished());
    rig.advance_millis(1);
    assert_eq!(waiter.await.unwrap().status, 200);
    assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 404);
}

#[tokio::test]
async fn in_flight_grant_is_held_for_the_ttl() {
    let text = "quotas: {k: {rpd: 1000, concurrency: 8}}\nmargin: {percent: 0}\n\
        serve: {listen: '127.0.0.1:0', reservation_ttl: 5s}";
    let rig = Rig::start(text, Default::default()).await;
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(rig.post("/rate/k").await.body);
    }
    rig.advance_millis(4999);
    assert_eq!(rig.post("/rate/k").await.status, 429);
    rig.advance_millis(1);
    until(|| rig.limiter.stats("rate/k").limits.iter().all(|limit| limit.held == 0)).await;
    assert_eq!(rig.delete(&format!("/rate/k/{}", ids[0])).await.status, 404);
    assert_eq!(rig.count_granted(20, "/rate/k").await, 8);
}

#[tokio::test]
async fn returned_grant_is_not_held() {
    let text = "quotas: {k: {rpd: 100000, concurrency: 1}}\nserve: {listen: '127.0.0.1:0'}";
    let rig = Rig::start(text, Default::default()).await;
    rig.post("/rate/l").await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..300 {
        let id = rig.post("/rate/k").await.body;
        assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 200);
    }
    assert!(tasks() <= before + 2, "{before} before, {} now", tasks());
}

#[tokio::test]
async fn returned_grant_keeps_tokens_charged() {
    let text = "quotas: {k: {rpm: 1, tpm: 100}}\nmargin: {percent: 0}\n\
        serve: {listen: '127.0.0.1:0'}";
    let rig = Rig::start(text, Default::default()).await;
    let id = rig.post("/rate/k?tokens=60").await.body;
    assert_eq!(rig.post("/rate/k").await.status, 429);
    assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 200);
    assert_eq!(rig.post("/rate/k?tokens=41").await.status, 429);
    assert_eq!(rig.post("/rate/k?tokens=40").await.status, 200);
}

#[tokio::test]
async fn new_request_never_overtakes_waiters() {
    let rig = Rig::new("max_requests: 1").await;
    rig.post("/rate/k").await;
    let first = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    let second = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    for _ in 0..3 {
        assert_eq!(rig.post("/rate/k").await.status, 429);
    }
    rig.advance_millis(1000);
    assert_eq!(first.await.unwrap().status, 200);
    assert!(!second.is_finished());
    assert_eq!(rig.post("/rate/k").await.status, 429);
    rig.advance_millis(1000);
    assert_eq!(second.await.unwrap().status, 200);
}

#[tokio::test]
async fn disconnected_waiter_frees_queue_entry() {
    for client in [http1(), http2()] {
        let rig = Rig::new("max_requests: 1, max_requests_in_queue: 2").await;
        rig.post("/rate/k").await;
        let disconnected =
            tokio::spawn(HttpReply::of(client.post(rig.url("/rate/k?canWait=true"))));
        until(|| rig.waiting("k") == 1).await;
        let second = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
        assert_eq!(rig.post("/rate/k?canWait=true").await.status, 429);
        disconnected.abort();
        until(|| rig.waiting("k") == 1).await;
        let third = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
        rig.advance_millis(1000);
        assert_eq!(second.await.unwrap().status, 200);
        rig.advance_millis(1000);
        assert_eq!(third.await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn no_window_admits_more_than_the_limit() {
    let rig = Rig::new("max_requests: 10, window_millis: 100").await;
    rig.advance_millis(99);
    assert_eq!(rig.count_granted(20, "/rate/k").await, 10);
    for _ in 0..99 {
        rig.advance_millis(1);
        assert_eq!(rig.post("/rate/k").await.status, 429, "across the boundary of two windows");
    }
    rig.advance_millis(1);
    assert_eq!(rig.count_granted(20, "/rate/k").await, 10);
}

#[tokio::test]
async fn timed_out_wait_is_refused() {
    let rig = Rig::new("max_requests: 1").await;
    rig.post("/rate/k").await;
    let refused = rig.post("/rate/k?canWait=true&timeout=900ms").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "1"));
    let waiter = rig.spawn_waiter("k", "/rate/k?canWait=true&timeout=1").await;
    rig.advance_millis(1000);
    assert_eq!(waiter.await.unwrap().status, 200);
}

#[tokio::test]
async fn wait_is_bounded_by_max_wait() {
    let text = "waiting: {max_wait: 500ms}\nserve: {listen: '127.0.0.1:0', max_requests: 1}";
    let rig = Rig::start(text, Default::default()).await;
    rig.post("/rate/k").await;
    for timeout in ["", "&timeout=1h"] {
        let refused = rig.post(&format!("/rate/k?canWait=true{timeout}")).await;
        assert_eq!(refused.status, 429, "{timeout}");
    }
    rig.advance_millis(501);
    let refused = rig.post("/rate/k?canWait=true&timeout=100ms").await;
    assert_eq!(refused.status, 429, "a shorter timeout of the request applies");
    let waiter = rig.spawn_waiter("k", "/rate/k?canWait=true&timeout=1h").await;
    rig.advance_millis(499);
    assert_eq!(waiter.await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn debug_and_requests_do_not_block_each_other() {
    let rig = Rig::new("max_requests: 5").await;
    let client = http2();
    let replies: Vec<_> = (0..400)
        .map(|at| {
            let (method, path) = match at % 4 {
                0 => (Method::GET, "/debug".to_owned()),
                _ => (Method::POST, format!("/rate/key-{}", at % 50)),
            };
            tokio::spawn(HttpReply::of(client.request(method, rig.url(&path))))
        })
        .collect();
    for reply in replies {
        assert!([200, 429].contains(&reply.await.unwrap().status));
    }
    let all = rig.get("/debug").await.json();
    let instances = all["Instances"].as_object().unwrap();
    assert_eq!(instances.len(), 50);
    let approved = |one: &serde_json::Value| one["NumApprovedThisWindow"].as_u64().unwrap();
    for (key, one) in instances {
        // Every second key received half of its eight requests from `/debug`.
        let odd = key.ends_with(['1', '3', '5', '7', '9']);
        assert_eq!(approved(one), if odd { 5 } else { 4 }, "{key}");
    }
}
