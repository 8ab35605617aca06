//! c06: `GET /healthz`, and readiness.

use crate::rig::Rig;

#[tokio::test]
async fn c06_server_is_healthy_and_ready() {
    let rig = Rig::new("max_requests: 1").await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(rig.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn c06_server_without_store_is_ready_if_it_serves() {
    for (mode, ready) in [("closed", false), ("open", true), ("local_share", true)] {
        let text = format!(
            "cluster: {{redis: 'redis://127.0.0.1:1', account: a, timeout: 20ms, on_failure: {mode}}}\n\
             serve: {{listen: '127.0.0.1:0'}}"
        );
        let config = paceline_serve::parse(&text).unwrap();
        let limiter = paceline_serve::limiter(&config).unwrap();
        let server =
            paceline_serve::Server::bind(config, limiter, Default::default()).await.unwrap();
        let address = server.addr();
        let get = async |path: &str| {
            let url = format!("http://{address}/{path}");
            let reply = paceline_testing::http::client().get(url).send().await.unwrap();
            (reply.status().as_u16(), reply.text().await.unwrap())
        };
        assert_eq!(get("healthz").await.0, 200, "{mode}");
        let (status, text) = get("readyz").await;
        assert_eq!(status, if ready { 200 } else { 503 }, "{mode}");
        assert!(text.contains("unreachable"), "{mode}: {text}");
    }
}
