//! Batches that share limits: processes that have only a Redis server and the provider in common.
#![expect(clippy::disallowed_methods, reason = "real servers take real time, up to a limit")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use paceline_simulate::{OutputSize, Settings, SimulatedServer, Stats};
use serde_json::Value;
use tempfile::TempDir;

use paceline_testing::full::full_or;
use paceline_testing::servers::Redis;

/// A batch process that simulates a machine.
struct Machine {
    folder: TempDir,
    batch: Child,
}

impl Machine {
    fn start(name: &str, requests: usize, config: &str, base: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file =
            |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
        let line = |at: usize| {
            let body =
                r#"{"model":"gpt-4o","max_tokens":8,"messages":[{"role":"user","content":"Hi"}]}"#;
            format!(
                "{{\"custom_id\":\"{name}-{at}\",\"url\":\"/v1/chat/completions\",\"body\":{body}}}\n"
            )
        };
        file("in.jsonl", (0..requests).map(line).collect());
        file("paceline.yaml", config.to_owned());
        let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
        command.current_dir(folder.path()).args(["batch", "in.jsonl", "-o", "out.jsonl"]);
        command.args(["--config", "paceline.yaml", "--report", "report.json", "--base-url", base]);
        command.args(flags).env("OPENAI_API_KEY", "any").env("HOME", folder.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PACELINE_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { batch: command.spawn().unwrap(), folder }
    }

    /// Waits for the end of the batch. Returns its report and its stderr.
    fn ended(self) -> (Value, String) {
        let output = self.batch.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{:?}: {stderr}", output.status);
        (read(&self.folder.path().join("report.json")), stderr)
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Starts a provider that admits 50 requests per second and bursts of 100.
async fn provider() -> SimulatedServer {
    let settings = Settings::default().with_rpm(3_000).with_burst(Duration::from_secs(2));
    let latency = (Duration::from_millis(1), Duration::from_millis(20));
    let settings = settings.with_output(OutputSize::Fixed(4)).with_latency(latency.0, latency.1);
    SimulatedServer::bind(settings, SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap()
}

fn config(redis: &str, more: &str) -> String {
    format!(
        "quotas:\n  gpt-4o: {{limits: [{{dimension: requests, limit: 3000, window: 1m, \
         algorithm: token_bucket, burst: 100}}]}}\n\
         cluster: {{redis: '{redis}', account: team-a, timeout: 1s, {more}}}\n"
    )
}

/// Sends a large and a small file from two machines with this configuration; returns the reports,
/// the provider's counters and the duration.
async fn both(more: &str) -> ([Value; 2], Stats, Duration) {
    let (redis, server) = (Redis::start(), provider().await);
    let (base, config) = (format!("http://{}", server.addr()), config(&redis.url(), more));
    let started = Instant::now();
    let machines = [("large", large()), ("small", SMALL)]
        .map(|(name, requests)| Machine::start(name, requests, &config, &base, &[]));
    let ended = tokio::task::spawn_blocking(|| machines.map(Machine::ended)).await.unwrap();
    let took = started.elapsed();
    let reports = ended.map(|(report, stderr)| {
        assert_eq!(stderr, "", "no warnings");
        report
    });
    (reports, server.shutdown().await.unwrap(), took)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_batches_on_two_machines_share_one_limit() {
    let requests = large();
    for mode in ["mode: exact", "mode: lease"] {
        let ([large, small], stats, took) = both(mode).await;
        let sum = |field: &str| large[field].as_u64().unwrap() + small[field].as_u64().unwrap();
        let total = (requests + SMALL) as u64;
        assert_eq!((sum("succeeded"), sum("failed"), sum("rate_limited")), (total, 0, 0), "{mode}");
        assert_eq!((stats.total.admitted, stats.total.refused), (total, 0), "{mode}");
        assert!(large["shared"] == true && small["shared"] == true);
        // With half of the limit each, the large batch would take longer.
        let halves = Duration::from_secs((requests as u64 - 50) / 25);
        assert!(took < halves, "{mode}: {took:?}, and with half of the limit each {halves:?}");
        let part = |report: &Value| report["utilization"].as_f64();
        println!("{mode}: {took:?}, parts {:?} {:?}", part(&large), part(&small));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_without_redis_uses_local_share_and_warns() {
    let mut redis = Redis::start();
    redis.server().kill();
    let server = provider().await;
    let base = format!("http://{}", server.addr());

    let config = config(&redis.url(), "on_failure: local_share");
    let machine = Machine::start("alone", 300, &config, &base, &[]);
    let (report, stderr) = tokio::task::spawn_blocking(|| machine.ended()).await.unwrap();
    assert_eq!(
        (report["succeeded"].as_u64(), report["rate_limited"].as_u64()),
        (Some(300), Some(0))
    );
    let output = "paceline: the store of shared limits is unavailable (connection refused: no server listens at \
                  this address; start the server, or correct the host and the port): this run uses its local share \
                  until it is back\n";
    assert_eq!(stderr, output, "one warning");
    server.shutdown().await.unwrap();
}

#[test]
fn simulated_run_leaves_shared_limits_unused() {
    let redis = Redis::start();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("t.yaml"), config(&redis.url(), "mode: exact")).unwrap();
    std::fs::write(
        path("in.jsonl"),
        r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}"#,
    )
    .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.current_dir(folder.path()).args(["batch", "in.jsonl", "-o", "out.jsonl"]);
    let output = command.args(["--config", "t.yaml", "--simulate"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert!(keys.is_empty(), "{keys:?}");
}

/// Returns the number of requests in the large file.
fn large() -> usize {
    full_or(450, 200)
}

const SMALL: usize = 50;
