use serde_json::{Value, json};
use tollgate_testing::http::{Reply, http1};

use super::process::Served;
use crate::cli::rig::Home;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_used_is_used_when_the_server_starts_again() {
    let home = Home::new();
    home.write("tollgate.yaml", &config("{yaml: state.yaml}"));
    let served = Served::spawn(&mut home.tollgate(SERVE));
    let settled = reserve(&served.url("")).await;
    reserve(&served.url("")).await;
    let settle = served.url(&format!("/v1/reservations/{settled}/settle"));
    let answer = post(&settle, json!({"cost": {"tokens": 7}})).await;
    assert_eq!(answer["state"], "settled");
    served.terminate();

    let served = Served::spawn(&mut home.tollgate(SERVE));
    let stats = Reply::of(http1().get(served.url("/v1/stats/a"))).await;
    assert_eq!(stats.json()["limits"][0]["used"], 37, "{stats:?}");
    served.terminate();
}

fn config(store: &str) -> String {
    format!(
        "{{serve: {{listen: '127.0.0.1:0'}}, store: {store}, quotas: {{a: {{tpd: 1000}}}}, \
          margin: {{percent: 0, lag: 0s}}}}"
    )
}

/// The id of a reservation of 30 tokens.
async fn reserve(base: &str) -> String {
    let asked = json!({"keys": ["a"], "cost": {"tokens": 30}, "ttl_ms": 3_600_000});
    let answer = post(&format!("{base}/v1/reserve"), asked).await;
    answer["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn post(url: &str, body: Value) -> Value {
    let request = http1().post(url).header("content-type", "application/json");
    Reply::of(request.body(body.to_string())).await.json()
}

const SERVE: &str = "serve --config tollgate.yaml --port 0";
