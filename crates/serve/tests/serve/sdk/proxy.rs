//! The official SDKs through the proxy; only their base URL is set.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::join_all;
use paceline::Limiter;
use paceline_simulate::{Fault, FaultKind, OutputSize, Settings};
use serde_json::Value;
use tokio::net::TcpSocket;

use super::node::Node;
use super::python::Python;
use paceline_testing::full::full_or;

/// The cases of each SDK, in the order of its scripts.
const OPENAI: &[&str] = &[
    "plain",
    "stream",
    "responses",
    "tools",
    "embeddings",
    "refused",
    "retried",
    "errors",
    "timeout",
];
const ANTHROPIC: &[&str] =
    &["plain", "stream", "tools", "count", "refused", "retried", "errors", "timeout"];
const GENAI: &[&str] =
    &["plain", "stream", "tools", "embeddings", "count", "refused", "retried", "errors", "timeout"];

#[tokio::test]
async fn python_sdks_work_through_the_proxy() {
    let Some(python) = Python::with_sdks() else { return };
    let run = async |script: &str, expected: &[&str]| {
        let setup = Setup::start().await;
        let reports = python.run(script, &setup.env()).await;
        setup.check(script, &reports, expected).await;
    };
    let sdks = [
        ("proxy/openai_client.py", OPENAI),
        ("proxy/anthropic_client.py", ANTHROPIC),
        ("proxy/genai_client.py", GENAI),
    ];
    join_all(sdks[..full_or(3, 1)].iter().map(|(script, expected)| run(script, expected))).await;
}

#[tokio::test]
async fn node_sdks_work_through_the_proxy() {
    let Some(node) = Node::with_sdks() else { return };
    let run = async |script: &str, expected: &[&str]| {
        let setup = Setup::start().await;
        let reports = node.run(script, &setup.env()).await;
        setup.check(script, &reports, expected).await;
    };
    // Google's SDK does not retry.
    let genai: Vec<&str> = GENAI.iter().copied().filter(|&case| case != "retried").collect();
    let sdks = [
        ("anthropic_client.mjs", ANTHROPIC),
        ("openai_client.mjs", OPENAI),
        ("genai_client.mjs", &genai),
    ];
    join_all(sdks[..full_or(3, 1)].iter().map(|(script, expected)| run(script, expected))).await;
}

/// Each SDK would retry a failed request twice, and so does the proxy: nine attempts together.
#[tokio::test]
async fn python_sdks_do_not_multiply_retries() {
    let Some(python) = Python::with_sdks() else { return };
    let failing = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&failing);
    let respond = move || {
        count.fetch_add(1, Ordering::Relaxed);
        let error = "{\"error\": {\"message\": \"it failed\", \"type\": \"server_error\"}}";
        let headers = [("content-type", "application/json"), ("retry-after-ms", "1")];
        async move { (StatusCode::INTERNAL_SERVER_ERROR, headers, error) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addr = listener.local_addr().expect("a bound listener");
    let app = axum::Router::new().fallback(respond);
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let config = format!(
        "retry: {{attempts: 3}}
serve:
  listen: '127.0.0.1:0'
  upstreams:
    openai: {{base_url: 'http://{addr}/v1', provider: openai}}
    anthropic: {{base_url: 'http://{addr}', provider: anthropic}}
"
    );
    let config = paceline_serve::parse(&config).expect("a valid configuration");
    let limiter = paceline_serve::limiter(&config).expect("a limiter");
    let proxy =
        paceline_serve::Server::bind(config, limiter, paceline_serve::Tokens::default()).await;
    let proxy = proxy.expect("a free port");
    let env = [("PACELINE_PROXY", format!("http://{}", proxy.addr()))];
    for case in &["anthropic", "openai"][..full_or(2, 1)] {
        let mut env = env.to_vec();
        env.push(("PACELINE_SDK", (*case).to_owned()));
        let reports = python.run("proxy/retries.py", &env).await;
        assert_eq!(reports[0]["case"], *case);
        assert_eq!(failing.swap(0, Ordering::Relaxed), 3, "{case}: only the proxy retries");
    }
    serving.abort();
}

/// A proxy in front of providers that respond, refuse, delay, and are unreachable.
struct Setup {
    open: paceline_simulate::SimulatedServer,
    _others: [paceline_simulate::SimulatedServer; 2],
    _unreachable: TcpSocket,
    proxy: paceline_serve::Server,
    limiter: Limiter,
}

impl Setup {
    async fn start() -> Self {
        let twelve = Settings::default().with_output(OutputSize::Fixed(12));
        let open = provider(twelve.clone()).await;
        let fault = Fault::every(1, FaultKind::Unauthorized);
        let denied = provider(twelve.clone().with_fault(fault)).await;
        let hour = Duration::from_secs(3_600);
        let slow = provider(twelve.with_latency(hour, hour)).await;
        // Held to reserve a closed port.
        let unreachable = TcpSocket::new_v4().expect("a socket");
        unreachable.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let to = |addr: SocketAddr, provider: &str| {
            format!("{{base_url: 'http://{addr}', provider: {provider}}}")
        };
        let config = format!(
            "quotas:
  limited: {{limits: [{{dimension: requests, limit: 1, window: 1d}}]}}
  paced: {{limits: [{{dimension: requests, limit: 1, window: 1s}}]}}
  tools:
    limits:
      - {{dimension: input_tokens, limit: 1000000, window: 1d, algorithm: sliding_window}}
      - {{dimension: output_tokens, limit: 1000000, window: 1d, algorithm: sliding_window}}
  gpt-4o: {{concurrency: 8}}
  claude-sonnet-4-5: {{concurrency: 8}}
  gemini-2.5-flash: {{concurrency: 8}}
serve:
  listen: '127.0.0.1:0'
  mode: reject
  upstreams:
    openai: {}
    anthropic: {}
    gemini: {}
    denied: {}
    slow: {}
    unreachable: {}
",
            to(open.addr(), "openai"),
            to(open.addr(), "anthropic"),
            to(open.addr(), "gemini"),
            to(denied.addr(), "openai"),
            to(slow.addr(), "openai"),
            to(unreachable.local_addr().expect("a bound listener"), "openai"),
        );
        let config = paceline_serve::parse(&config).expect("a valid configuration");
        let limiter = config.limiter().expect("a limiter");
        let tokens = paceline_serve::Tokens::default();
        let proxy = paceline_serve::Server::bind(config, limiter.clone(), tokens).await;
        let proxy = proxy.expect("a free port");
        Self { open, _others: [denied, slow], _unreachable: unreachable, proxy, limiter }
    }

    fn env(&self) -> [(&'static str, String); 1] {
        [("PACELINE_PROXY", format!("http://{}", self.proxy.addr()))]
    }

    /// Asserts that all cases ran, the provider refused none, cancelled requests hold no quota, and
    /// that SDK, provider and limiter agree on the usage of tool calls and their follow-ups.
    async fn check(&self, script: &str, reports: &[Value], expected: &[&str]) {
        let cases: Vec<&str> =
            reports.iter().filter_map(|report| report["case"].as_str()).collect();
        assert_eq!(cases, expected, "{script}");
        let counted = self.open.stats().total;
        assert!(counted.admitted >= 5 && counted.refused == 0, "{script}: {counted:?}");
        let held = || {
            self.limiter
                .state()
                .stats()
                .into_iter()
                .flat_map(|(_, stats)| stats.limits)
                .map(|limit| limit.held)
                .sum::<u64>()
        };
        while held() > 0 {
            tokio::task::yield_now().await;
        }
        let tools = reports
            .iter()
            .find(|report| report["case"] == "tools")
            .expect("a report of the tool calls");
        let counted = self.open.stats().models["tools"];
        let counted = [counted.input_tokens, counted.output_tokens];
        let charged: Vec<u64> =
            self.limiter.stats("tools").limits.iter().map(|limit| limit.used).collect();
        assert_eq!(["input", "output"].map(|name| tools[name].as_u64()), counted.map(Some));
        assert_eq!(charged, counted, "{script}");
        let keys = format!("{:?}", self.limiter.state().keys());
        assert!(!keys.contains("proxied"), "API keys are not stored: {keys}");
    }
}

async fn provider(settings: Settings) -> paceline_simulate::SimulatedServer {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    paceline_simulate::SimulatedServer::bind(settings, any).await.expect("a free port")
}
