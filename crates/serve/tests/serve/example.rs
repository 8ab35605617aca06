//! The example `examples/serve.rs`.

#[path = "../../examples/serve.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod serve;

use paceline::quota::Cost;
use paceline_serve::Tokens;

use paceline_testing::wire::Wire;

const CONFIG: &str = "{quotas: {reports: {rpm: 2}}, serve: {listen: '127.0.0.1:0'}}";

#[tokio::test]
async fn program_and_clients_share_a_limit() {
    let (server, limiter) =
        serve::start(CONFIG, Tokens::default()).await.expect("the server starts");
    let permit = limiter.acquire("rate/reports", &Cost::new()).await.expect("the limit allows two");
    drop(permit);
    let mut wire = Wire::connect(server.addr()).await.expect("a connection");
    for expected in [200, 429] {
        assert_eq!(
            wire.request("POST", "/rate/reports").await.expect("a response").status,
            expected
        );
    }
    drop(wire);
    server.shutdown().await.expect("the server stops");
}
