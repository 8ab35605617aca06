//! Provider traffic and the cluster on the live page.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use paceline::middleware::RateLimitLayer;
use serde_json::json;
use tower::{Layer, ServiceExt, service_fn};

use super::metrics::scrape;
use super::{Chromium, Rig};

const QUOTAS: &str = "
providers: [openai]
quotas: {m: {rpm: 500, tpm: 30000}}
";

/// Sends a chat completion through the middleware, like the proxy.
async fn send(rig: &Rig, status: u16) {
    const USAGE: &str =
        r#"{"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 9}}"#;
    let respond = move |_: Request<String>| async move {
        Response::builder().status(status).body(Full::<Bytes>::from(USAGE))
    };
    let body = json!({"model": "m", "messages": [], "max_tokens": 50}).to_string();
    let request = Request::post("/v1/chat/completions").body(body).unwrap();
    let client = RateLimitLayer::new(rig.limiter.clone()).layer(service_fn(respond));
    client.oneshot(request).await.unwrap().into_body().collect().await.unwrap();
}

#[tokio::test]
async fn provider_traffic_is_shown_and_scraped() {
    let rig = Rig::start(QUOTAS).await;
    send(&rig, 200).await;
    send(&rig, 200).await;
    send(&rig, 400).await;
    let snapshot = rig.events().await.next().await.unwrap();
    let passed = json!([{
        "name": "openai", "requests": 3, "failed": 1, "input_tokens": 24, "output_tokens": 18,
        "took": 0,
    }]);
    assert_eq!(snapshot["upstreams"], passed);
    assert_eq!(snapshot.get("cluster"), None);
    let page = scrape(&rig).await;
    let model = [("gen_ai_request_model", "m"), ("gen_ai_provider_name", "openai")];
    assert_eq!(page.sum("gen_ai_client_token_usage_sum", &model), 42.0);
    assert_eq!(page.sum("gen_ai_client_operation_duration_seconds_count", &model), 3.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_store_is_shown() {
    let cluster = "cluster: {redis: 'redis://127.0.0.1:1', account: team-a, on_failure: open}";
    let rig = Rig::start(&format!("{QUOTAS}{cluster}")).await;
    send(&rig, 200).await;
    let snapshot = rig.events().await.next().await.unwrap();
    let cluster = &snapshot["cluster"];
    assert_eq!((&cluster["account"], &cluster["connected"]), (&json!("team-a"), &json!(false)));
    assert_eq!(cluster["degraded"], 1);
    let page = scrape(&rig).await;
    assert_eq!(page.sum("paceline_cluster_connected", &[]), 0.0);
    assert_eq!(page.sum("paceline_cluster_degraded_total", &[]), 1.0);

    let browser = Chromium::start().await;
    browser.set_viewport(1280, "light").await;
    browser.open(&rig.url("/")).await;
    browser.until("!document.getElementById('side').hidden").await;
    let facts = "return document.getElementById('cluster-facts').textContent";
    let facts = browser.run(facts).await;
    assert!(facts.as_str().unwrap().contains("Storeunreachable"), "{facts}");
    let row = "return document.getElementById('upstream-rows').textContent";
    assert_eq!(browser.run(row).await, "openai101290 ms");
    for width in [1280, 768] {
        browser.set_viewport(width, "light").await;
        let table = "const table = document.querySelector('#upstreams .wide');
            return table.scrollWidth <= table.clientWidth";
        assert_eq!(browser.run(table).await, true, "the table fits at {width} px");
    }
    browser.screenshot("cluster-768-light").await;
    browser.set_viewport(1280, "light").await;
    browser.screenshot("cluster-1280-light").await;
    browser.set_viewport(360, "dark").await;
    browser.screenshot("cluster-360-dark").await;
    assert_eq!(browser.log().await, Vec::<String>::new());
}
