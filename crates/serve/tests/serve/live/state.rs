//! The metrics and the readiness of a server with a store, shared limits and a bus.

use std::time::Duration;

use paceline::quota::Cost;
use paceline_serve::{Server, Tokens};
use paceline_testing::metrics_page::MetricsPage;
use paceline_testing::servers::Redis;

/// Starts a server with this configuration, as `paceline serve` does.
async fn server(yaml: &str) -> (Server, paceline::Limiter) {
    let config =
        paceline_serve::parse(&format!("{yaml}\nserve: {{listen: '127.0.0.1:0'}}")).unwrap();
    let limiter = config.open(config.builder()).unwrap();
    (Server::bind(config, limiter.clone(), Tokens::default()).await.unwrap(), limiter)
}

async fn get(server: &Server, path: &str) -> (u16, String) {
    let url = format!("http://{}{path}", server.addr());
    let response = paceline_testing::http::client().get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn scrape(server: &Server) -> MetricsPage {
    MetricsPage::parse(&get(server, "/metrics").await.1)
}

/// Waits for a page of metrics on which `name` exceeds `least`.
async fn page_above(server: &Server, name: &str, least: f64) -> MetricsPage {
    let waiting = async {
        loop {
            let page = scrape(server).await;
            if page.sum(name, &[]) > least {
                return page;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting)
        .await
        .unwrap_or_else(|_| panic!("{name}: not within 20 s"))
}

/// Waits for a status of `/readyz`.
async fn until_ready(server: &Server, expected: u16) {
    let waiting = async {
        while get(server, "/readyz").await.0 != expected {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.expect("within 20 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_and_bus_are_on_metrics_page() {
    let (mut redis, folder) = (Redis::start(), tempfile::tempdir().unwrap());
    let store = folder.path().join("state.yaml");
    let (url, store) = (redis.url(), store.display());
    let (server, limiter) = server(&format!(
        "quotas: {{m: {{rpd: 100, concurrency: 50}}, l: {{rpd: 100}}}}\nstore: {{yaml: '{store}', flush: 10ms}}\n\
         bus: {{redis: '{url}'}}\n\
         cluster: {{redis: '{url}', account: a, mode: lease, timeout: 2s, on_failure: open}}"
    ))
    .await;
    until_ready(&server, 200).await;
    page_above(&server, "paceline_bus_connected", 0.0).await;
    for _ in 0..5 {
        limiter.acquire("m", &Cost::new()).await.unwrap().settle(&Cost::new());
    }
    while scrape(&server).await.sum("paceline_cluster_decisions_total", &[("by", "lease")]) == 0.0 {
        limiter.acquire("l", &Cost::new()).await.unwrap().settle(&Cost::new());
    }
    assert!(limiter.feedback().reduce("m", "a test"));
    let page = page_above(&server, "paceline_bus_published_total", 0.0).await;
    assert_eq!(page.sum("paceline_cluster_connected", &[]), 1.0);
    assert_eq!(page.sum("paceline_cluster_members", &[]), 1.0);
    // Keys with a limit of concurrent requests are decided by the store.
    assert!(page.sum("paceline_cluster_decisions_total", &[("by", "store")]) >= 5.0);
    for name in ["cluster_call", "bus_publish", "store_flush"] {
        let name = format!("paceline_{name}_seconds");
        assert_eq!(page.kind(&name), Some("histogram"));
        let count = page.sum(&format!("{name}_count"), &[]);
        assert!(count > 0.0 && page.sum(&format!("{name}_sum"), &[]) > 0.0, "{name}");
        assert_eq!(page.sum(&format!("{name}_bucket"), &[("le", "+Inf")]), count);
    }
    assert!(page.sum("paceline_cluster_call_seconds_count", &[]) >= 10.0);

    redis.server().kill();
    page_above(&server, "paceline_cluster_outages_total", 0.0).await;
    let (status, text) = get(&server, "/readyz").await;
    assert!(status == 200 && text.contains("unreachable"), "open serves without it: {text}");
    limiter.acquire("m", &Cost::new()).await.unwrap().settle(&Cost::new());
    let page = page_above(&server, "paceline_bus_retries_total", 2.0).await;
    let degraded = |policy| page.sum("paceline_cluster_degraded_total", &[("policy", policy)]);
    assert_eq!((degraded("open"), degraded("closed"), degraded("local_share")), (1.0, 0.0, 0.0));
    assert_eq!(page.sum("paceline_cluster_outages_total", &[]), 1.0);
    assert_eq!(page.sum("paceline_cluster_undelivered_keys", &[]), 1.0);
    assert_eq!(page.sum("paceline_cluster_connected", &[]), 0.0);
    assert_eq!(page.sum("paceline_bus_connected", &[]), 0.0);
    assert_eq!(page.sum("paceline_bus_outages_total", &[]), 1.0);
    assert!(page.sum("paceline_cluster_connects_total", &[]) > 1.0);
    redis.restart();
    let page = page_above(&server, "paceline_cluster_connected", 0.0).await;
    assert_eq!(page.sum("paceline_cluster_undelivered_keys", &[]), 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_sqlite_file_makes_server_unready() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = path.display();
    let (server, _limiter) =
        server(&format!("quotas: {{m: {{rpd: 100}}}}\nstore: {{sqlite: '{store}', flush: 1h}}"))
            .await;
    assert_eq!(get(&server, "/readyz").await, (200, "OK".to_owned()));
    std::fs::remove_file(&path).unwrap();
    until_ready(&server, 503).await;
    let (_, text) = get(&server, "/readyz").await;
    assert!(text.contains("deleted or replaced") && !text.contains("state.db"), "{text}");
}

/// Generous, since the machine may be busy with other tests.
const TIMEOUT: Duration = Duration::from_secs(20);
