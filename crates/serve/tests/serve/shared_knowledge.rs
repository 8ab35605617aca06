//! What a server says about usage that a store shared with other servers keeps.

use paceline_serve::{Server, Tokens};
use paceline_testing::servers::Redis;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::rig::http1;

async fn server(redis: &Redis) -> Server {
    let text = format!(
        "quotas: {{k: {{rpd: 10}}}}\nmargin: {{percent: 0}}\n\
         cluster: {{redis: '{}', account: a, on_failure: closed, timeout: 1s}}\n\
         serve: {{listen: '127.0.0.1:0'}}",
        redis.url()
    );
    let config = paceline_serve::parse(&text).unwrap();
    let limiter = paceline_serve::limiter(&config).unwrap();
    let mut tokens = Tokens::default();
    tokens.admin = Some(ADMIN.to_owned());
    Server::bind(config, limiter, tokens).await.unwrap()
}

async fn send(
    client: &Client,
    server: &Server,
    method: Method,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let url = format!("http://{}{path}", server.addr());
    let request =
        client.request(method, url).header("content-type", "application/json").bearer_auth(ADMIN);
    let reply = request.body(body.to_string()).send().await.unwrap();
    let status = reply.status().as_u16();
    (status, serde_json::from_slice(&reply.bytes().await.unwrap()).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stats_decide_and_reset_ask_the_shared_store() {
    let mut redis = Redis::start();
    let (one, other, client) = (server(&redis).await, server(&redis).await, http1());
    let reserve = json!({"keys": ["k"], "cost": {"requests": 7}});
    let (status, reserved) = send(&client, &one, Method::POST, "/v1/reserve", reserve).await;
    assert_eq!(status, 201, "{reserved}");
    let (_, stats) = send(&client, &other, Method::GET, "/v1/stats/k", json!(null)).await;
    assert_eq!(stats["limits"][0]["available"], 3, "{stats}");
    assert!(stats["age_ms"].as_u64().unwrap() < 5_000, "{stats}");
    let four = json!({"keys": ["k"], "cost": {"requests": 4}});
    let (_, decision) = send(&client, &other, Method::POST, "/v1/decide", four).await;
    assert_eq!(decision["allowed"], false, "{decision}");
    assert!(decision["keys"][0]["age_ms"].is_u64(), "{decision}");
    let reset = || send(&client, &other, Method::POST, "/v1/reset", json!({"key": "k"}));
    assert_eq!(reset().await.0, 204);
    redis.server().kill();
    assert_eq!(reset().await.0, 202, "the store has not confirmed it");
}

const ADMIN: &str = "the admin token";
