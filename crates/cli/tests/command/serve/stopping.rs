use paceline_testing::http::{HttpReply, http1, post_json, reserve};
use serde_json::json;

use super::process::Served;
use crate::cli::rig::TestHome;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_survives_server_restart() {
    let home = TestHome::new();
    home.write("paceline.yaml", CONFIG);
    let served = Served::spawn(&mut home.paceline(SERVE));
    let settled = reserve(&served.url("")).await;
    reserve(&served.url("")).await;
    let settle = served.url(&format!("/v1/reservations/{settled}/settle"));
    let answer = post_json(&settle, &json!({"cost": {"tokens": 7}})).await;
    assert_eq!(answer.json()["state"], "settled");
    served.terminate();

    let served = Served::spawn(&mut home.paceline(SERVE));
    let stats = HttpReply::of(http1().get(served.url("/v1/stats/a"))).await;
    assert_eq!(stats.status, 200, "{stats:?}");
    assert_eq!(stats.json()["limits"][0]["used"], 37, "{stats:?}");
    served.terminate();
}

const CONFIG: &str = "
store: {yaml: state.yaml}
quotas: {a: {tpd: 1000}}
margin: {percent: 0, lag: 0s}
";

const SERVE: &str = "serve --config paceline.yaml --port 0";
