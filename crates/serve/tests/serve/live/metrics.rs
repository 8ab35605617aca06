use paceline::quota::Cost;

use super::Rig;
use paceline_testing::metrics_page::MetricsPage;

pub(super) async fn scrape(rig: &Rig) -> MetricsPage {
    let page = rig.get("/metrics").await;
    assert_eq!(page.headers()["content-type"], "text/plain; version=0.0.4");
    MetricsPage::parse(&page.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_under_load_are_monotonic_and_exact() {
    let rig = Rig::start("quotas: {chat: {rpm: 3000}}\nmargin: {percent: 0, lag: 0s}").await;
    let limiter = rig.limiter.clone();
    let take =
        move || (0..4_000).filter(|_| limiter.try_acquire("chat", &Cost::new()).is_ok()).count();
    let load = tokio::task::spawn_blocking(take);
    let mut before = 0.0;
    while !load.is_finished() {
        let page = scrape(&rig).await;
        let granted = page.sum("paceline_serve_granted_total", &[]);
        assert!(granted >= before, "{granted} after {before}");
        before = granted;
    }
    let granted = load.await.unwrap() as f64;
    let page = scrape(&rig).await;
    assert_eq!(granted, 3_000.0);
    assert_eq!(page.sum("paceline_serve_granted_total", &[]), granted);
    assert_eq!(page.sum("paceline_serve_denied_total", &[]), 1_000.0);
    let of_key = [("key", "chat"), ("dimension", "requests"), ("window_seconds", "60")];
    assert_eq!(page.sum("paceline_used", &of_key), granted);
    assert_eq!(page.sum("paceline_capacity", &of_key), 3_000.0);
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status_class() {
    let rig = Rig::start("quotas: {chat: {rpm: 3}}").await;
    for path in ["/", "/healthz", "/healthz", "/nowhere"] {
        rig.get(path).await;
    }
    let page = scrape(&rig).await;
    let requests = |route, status| {
        page.sum("paceline_serve_requests_total", &[("route", route), ("status", status)])
    };
    assert_eq!((requests("/", "2xx"), requests("/healthz", "2xx")), (1.0, 2.0));
    assert_eq!(requests("/{upstream}/...", "4xx"), 1.0);
    assert_eq!(page.sum("paceline_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    let started = page.sum("process_start_time_seconds", &[]);
    assert_eq!(started, (rig.limiter.now().as_nanos() / 1_000_000_000) as f64);
}

#[tokio::test]
async fn client_keys_create_no_series() {
    let rig = Rig::start("quotas: {'tenant:*': {rpm: 3}}\nunknown_key: {rpm: 2}").await;
    let before = scrape(&rig).await.series();
    for number in 0..2_000 {
        drop(rig.limiter.try_acquire(&format!("tenant:{number}"), &Cost::new()));
        drop(rig.limiter.try_acquire(&format!("hostile \"\n{number}"), &Cost::new()));
    }
    let page = scrape(&rig).await;
    assert!(page.series() < before + 20, "{} after {before}", page.series());
    let keys = page.values("paceline_waiting", "key");
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["other", "tenant:*"]);
}
