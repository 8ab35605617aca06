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
async fn c06_server_without_store_is_not_ready() {
    let text = "cluster: {redis: 'redis://127.0.0.1:1', account: a, timeout: 20ms}\n\
        serve: {listen: '127.0.0.1:0'}";
    let config = tollgate_serve::parse(text).unwrap();
    let limiter = tollgate_serve::limiter(&config).unwrap();
    let server = tollgate_serve::Server::bind(config, limiter, Default::default()).await.unwrap();
    for (path, status) in [("healthz", 200), ("readyz", 503)] {
        let url = format!("http://{}/{path}", server.addr());
        assert_eq!(
            tollgate_testing::http::client().get(url).send().await.unwrap().status(),
            status
        );
    }
}
