//! Runs `examples/prometheus.rs` and scrapes it.

#[path = "../../../examples/prometheus.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod prometheus;

use std::net::SocketAddr;

use paceline_simulate::{Settings, SimulatedServer};

use super::MetricsPage;

fn client() -> reqwest::Client {
    paceline_testing::http::client()
}

async fn scrape(addr: SocketAddr) -> MetricsPage {
    let page = client().get(format!("http://{addr}/metrics")).send().await.unwrap();
    assert_eq!(page.headers()["content-type"], "text/plain; version=0.0.4");
    MetricsPage::parse(&page.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scraped_metrics_equal_limiter_provider_and_responses() {
    let provider =
        SimulatedServer::bind(Settings::default(), ([127, 0, 0, 1], 0).into()).await.unwrap();
    let limiter = prometheus::limiter().unwrap();
    let addr = prometheus::serve(&limiter).await.unwrap();
    let url = format!("http://{}/v1/chat/completions", provider.addr());
    let (to, job) = (limiter.clone(), client());
    let job = tokio::spawn(async move { prometheus::send_all(job, &to, &url).await });

    let mut before = 0.0;
    while !job.is_finished() {
        let granted = scrape(addr).await.sum("paceline_granted_total", &[]);
        assert!(granted >= before, "{granted} after {before}");
        before = granted;
    }
    let done = job.await.unwrap().unwrap();
    let (page, stats) = (scrape(addr).await, limiter.stats("gpt-4o"));
    let key = [("key", "gpt-4o")];
    let [requests, tokens] = &stats.limits[..] else { panic!("two limits: {stats:?}") };
    assert_eq!(done.answers + done.refused, 60);
    assert!((8..=12).contains(&done.refused), "{done:?}");
    assert_eq!(page.sum("paceline_granted_total", &key), requests.used as f64);
    assert_eq!(page.sum("paceline_denied_total", &key), done.refused as f64);
    assert_eq!(page.sum("paceline_settled_total", &key), done.answers as f64);
    // The part of the minute that has passed is free again.
    let charged = page.sum("paceline_charged_tokens_total", &[("dimension", "tokens")]);
    assert!(charged >= tokens.used as f64, "{charged} charged, {} used", tokens.used);
    let admitted = provider.shutdown().await.unwrap().total;
    assert_eq!((admitted.admitted, admitted.refused), (done.answers, 0));
    assert_eq!(charged, admitted.charged_tokens as f64);
    assert_eq!(page.sum("gen_ai_client_token_usage_sum", &[]), done.tokens as f64);
    assert_eq!(page.sum("gen_ai_client_operation_duration_seconds_count", &[]), 60.0);
}

#[tokio::test]
async fn every_metric_is_on_the_page_with_kind() {
    let limiter = prometheus::limiter().unwrap();
    let addr = prometheus::serve(&limiter).await.unwrap();
    let _permit = limiter.try_acquire("gpt-4o", &paceline::Cost::new()).unwrap();
    let page = scrape(addr).await;
    assert_eq!(page.kind("paceline_granted_total"), Some("counter"));
    assert_eq!(page.kind("paceline_capacity"), Some("gauge"));
}
