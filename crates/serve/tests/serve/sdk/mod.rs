//! The official Python SDKs against the simulated provider: SDK, provider and paceline must read the
//! same usage from the same bytes.

mod documented;
mod install;
mod node;
mod proxy;
mod python;
mod recorder;

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use paceline::provider::{Profile, Scanner};
use paceline::quota::Usage;
use paceline_simulate::{OutputSize, Settings, SimulatedServer};
use serde_json::Value;

use self::python::Python;
use self::recorder::{Exchange, Recorder};

#[tokio::test]
async fn official_sdks_and_paceline_read_the_same_usage() {
    let Some(python) = Python::with_sdks() else { return };
    let sdks = [
        ("simulator/genai_client.py", "gemini", "stream"),
        ("simulator/openai_client.py", "openai", "response"),
        ("simulator/anthropic_client.py", "anthropic", "stream"),
    ];
    let check = |(script, profile, counted)| check(&python, script, profile, counted);
    join_all(sdks.into_iter().map(check)).await;
}

/// Runs a script, and compares its output with the recorded traffic. The counted tokens must match the
/// usage of the case `counted`.
async fn check(python: &Python, script: &str, profile: &str, counted: &str) {
    let (open, full, paced) = (serve(open()).await, serve(full()).await, serve(paced()).await);
    let recorder = Recorder::start(open.addr()).await;
    let [full_url, paced_url] = [&full, &paced].map(|server| format!("http://{}", server.addr()));
    let env = [
        ("PACELINE_OPEN_URL", recorder.url()),
        ("PACELINE_FULL_URL", full_url),
        ("PACELINE_PACED_URL", paced_url),
    ];
    let reports = python.run(script, &env).await;
    let passed = recorder.exchanges();
    assert_eq!(reports.len(), passed.len(), "{script} reports each exchange: {reports:?}");
    println!("{script}: {} calls", reports.len());
    let profile = Profile::named(profile).expect("a built-in profile");
    for (report, exchange) in reports.iter().zip(&passed) {
        compare(report, exchange, profile);
    }
    let case = |name: &str| {
        reports.iter().find(|report| report["case"] == name).expect("a report of the case")
    };
    assert_eq!(case("count")["counted"], case(counted)["usage"]["input"], "{script}");

    // Only one request fits; the others are admitted at the second attempt, after `Retry-After`.
    let (full, paced) = (full.stats().total, paced.stats().total);
    assert_eq!((full.admitted, full.refused), (1, 1), "{script}");
    assert_eq!(paced.admitted, 3, "{script}");
    assert!((1..=2).contains(&paced.refused), "{script}: {paced:?}");
}

/// Compares the SDK's report of an exchange with paceline's reading of its bytes.
fn compare(report: &Value, exchange: &Exchange, profile: Profile) {
    let mut scanner = Scanner::new(profile, exchange.content_type.as_deref());
    scanner.feed(&exchange.body);
    let scanned = scanner.finish();
    assert_eq!(usage(&report["usage"]), scanned.usage, "{report} {exchange:?}");
    let malformed = report["case"] == "malformed";
    assert_eq!(
        (exchange.status, scanned.error.is_some()),
        if malformed { (400, true) } else { (200, false) }
    );
    if let (Some(text), Some(usage)) = (report["text"].as_str(), scanned.usage) {
        assert_eq!(text.len() as u64, 4 * usage.output, "{report}");
    }
    if let Some(pieces) = report["pieces"].as_u64() {
        assert!(pieces > 1, "{report}");
    }
}

fn usage(report: &Value) -> Option<Usage> {
    let count = |name: &str| report[name].as_u64().expect("a number of tokens");
    report.is_object().then(|| Usage {
        input: count("input"),
        output: count("output"),
        cache_read: count("cache_read"),
        cache_write: count("cache_write"),
        long_cache_write: 0,
    })
}

/// Limits that the scripts do not reach; each response takes 20 to 40 ms.
fn open() -> Settings {
    Settings::default()
        .with_rpm(1_000)
        .with_tpm(1_000_000)
        .with_itpm(900_000)
        .with_otpm(100_000)
        .with_output(OutputSize::Fixed(12))
        .with_latency(Duration::from_millis(20), Duration::from_millis(40))
}

/// One request per minute.
fn full() -> Settings {
    Settings::default().with_rpm(1)
}

/// One request per second.
fn paced() -> Settings {
    Settings::default().with_rpm(60).with_burst(Duration::from_secs(1))
}

async fn serve(settings: Settings) -> SimulatedServer {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    SimulatedServer::bind(settings, any).await.expect("a free port")
}
