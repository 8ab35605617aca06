//! Measures batch jobs in real time against a simulated provider: the utilization of the limits and
//! the number of 429 responses. Run with `PACELINE_TRACES=... cargo bench -p paceline-cli --bench batch`.
//!
//! Each job sends 1,000 requests with the sizes of production traffic
//! (`azure-llm-2023-conversation.csv`) and latencies of 50-800 ms. There is one job per algorithm and
//! one charged by usage. The jobs start 6 s apart and take about 90 seconds in total.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderMap;
use paceline::provider::{COMPATIBLE_USAGE, OPENAI, Profile};
use paceline::quota::{Algorithm, Quota};
use paceline_cli::batch::{Job, Resume, Stop};
use paceline_simulate::{ChargeRule, Settings, SimulatedServer};

const RPM: u64 = 10_000;
const TPM: u64 = 700_000;
const REQUESTS: usize = 1_000;

struct Scenario {
    name: &'static str,
    profile: Profile,
    client: Algorithm,
    provider: paceline_simulate::LimitAlgorithm,
    charge: ChargeRule,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "token bucket",
        profile: OPENAI,
        client: Algorithm::TokenBucket,
        provider: paceline_simulate::LimitAlgorithm::TokenBucket,
        charge: ChargeRule::OpenAi,
    },
    Scenario {
        name: "sliding window",
        profile: OPENAI,
        client: Algorithm::SlidingWindow,
        provider: paceline_simulate::LimitAlgorithm::SlidingWindow,
        charge: ChargeRule::OpenAi,
    },
    Scenario {
        name: "fixed window",
        profile: OPENAI,
        client: Algorithm::FixedWindow,
        provider: paceline_simulate::LimitAlgorithm::FixedWindow,
        charge: ChargeRule::OpenAi,
    },
    Scenario {
        name: "token bucket, by usage",
        profile: COMPATIBLE_USAGE,
        client: Algorithm::TokenBucket,
        provider: paceline_simulate::LimitAlgorithm::TokenBucket,
        charge: ChargeRule::Usage,
    },
];

#[tokio::main]
async fn main() {
    let Some(traces) = std::env::var_os("PACELINE_TRACES").map(PathBuf::from) else {
        println!("skipped: PACELINE_TRACES is not set; set it to the folder of the traces");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = folder.path().join("in.jsonl");
    std::fs::write(&input, requests(&traces)).expect("a writable folder");
    println!("{REQUESTS} requests, {RPM} RPM, {TPM} TPM, latency 50-800 ms\n");
    println!(
        "{:<24} {:>9} {:>9} {:>12} {:>6} {:>7}",
        "", "ideal s", "last s", "utilization", "429s", "failed"
    );
    let jobs = SCENARIOS.iter().enumerate().map(|(number, scenario)| {
        let (folder, input) = (folder.path(), &input);
        async move {
            // Staggered, so that the initial bursts of four jobs don't compete for the CPU.
            tokio::time::sleep(Duration::from_secs(6 * number as u64)).await;
            run(scenario, folder, input).await;
        }
    });
    run_all(jobs).await;
}

/// Runs all jobs concurrently until the last one ends.
async fn run_all(jobs: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut jobs: Vec<_> = jobs.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        jobs.retain_mut(|job| job.as_mut().poll(cx).is_pending());
        if jobs.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

async fn run(scenario: &Scenario, folder: &Path, input: &Path) {
    let settings = Settings::default()
        .with_rpm(RPM)
        .with_tpm(TPM)
        .with_algorithm(scenario.provider)
        .with_charge(scenario.charge)
        .with_latency(Duration::from_millis(50), Duration::from_millis(800));
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = SimulatedServer::bind(settings, address).await.expect("a free port");
    let job = Job {
        input: input.to_owned(),
        output: folder.join(format!("{}.jsonl", scenario.name)),
        errors: None,
        base: format!("http://{}", server.addr()).parse().expect("a URL"),
        headers: HeaderMap::new(),
        profile: scenario.profile,
        quota: Quota::new().rpm(RPM).tpm(TPM).with_algorithm(scenario.client),
        config: None,
        max_in_flight: 512,
        retries: 5,
        timeout: Job::TIMEOUT,
        max_wait: None,
        priority: None,
        give_up_after: Job::GIVE_UP_AFTER,
        ordered: false,
        endpoint: "/v1/chat/completions".to_owned(),
        resume: Resume::default(),
        progress: false,
    };
    let report = job.run(&Stop::new()).await.expect("the job runs").report;
    let used = report.utilization.unwrap_or_default();
    let last = report.ideal_s / used;
    println!(
        "{:<24} {:>9.2} {last:>9.2} {:>11.1} % {:>6} {:>7}",
        scenario.name,
        report.ideal_s,
        used * 100.0,
        report.rate_limited,
        report.failed
    );
    server.shutdown().await.expect("the server shuts down");
}

/// Returns request lines with the sizes of the trace: four characters per prompt token, and a
/// `max_tokens` of one and a half times the output.
fn requests(traces: &Path) -> String {
    let file = traces.join("azure-llm-2023-conversation.csv");
    let text = std::fs::read_to_string(&file).expect("the conversation trace");
    let mut lines = String::new();
    for (number, row) in text.lines().skip(1).take(REQUESTS).enumerate() {
        let mut sizes = row.rsplit(',').map(|size| size.trim().parse::<usize>().expect("a size"));
        let (output, input) = (sizes.next().expect("a column"), sizes.next().expect("a column"));
        let prompt = "word".repeat(input);
        let max_tokens = output + output / 2 + 1;
        writeln!(
            lines,
            r#"{{"custom_id":"r{number}","method":"POST","url":"/v1/chat/completions","body":{{"model":"gpt-4o","messages":[{{"role":"user","content":"{prompt}"}}],"max_tokens":{max_tokens},"metadata":{{"output_tokens":"{output}"}}}}}}"#
        )
        .expect("writing to a string succeeds");
    }
    lines
}
