//! Runs `examples/reqwest_client.rs`.

#[path = "../../../examples/reqwest_client.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod reqwest_client;

use paceline_simulate::{Settings, SimulatedServer};

#[tokio::test]
async fn example_receives_no_429() {
    let settings = Settings::default().with_rpm(500).with_tpm(30_000);
    let server = SimulatedServer::bind(settings, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}/v1/chat/completions", server.addr());
    reqwest_client::send_all(super::reqwest::client(), &url).await.unwrap();
    let total = server.shutdown().await.unwrap().total;
    assert_eq!((total.admitted, total.refused), (20, 0));
}
