//! A batch in real time against the provider that enforces its limits: how much of the limit it
//! uses, and how often it is answered 429. `TOLLGATE_TRACES=... cargo bench -p tollgate-cli --bench batch`.
//!
//! 1,000 requests with the sizes of production traffic (`azure-llm-2023-conversation.csv`), latency
//! 50-800 ms, one job for each algorithm and one charged by usage; started 6 s apart, in about 90 seconds.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderMap;
use tollgate::provider::{COMPATIBLE_USAGE, OPENAI, Profile};
use tollgate::quota::{Algorithm, Quota};
use tollgate_cli::batch::{Job, Resume, Stop};
use tollgate_simulate::{ChargeRule, Settings, SimulatedServer};

const RPM: u64 = 10_000;
const TPM: u64 = 700_000;
const REQUESTS: usize = 1_000;

struct Scenario {
    name: &'static str,
    profile: Profile,
    client: Algorithm,
    provider: tollgate_simulate::LimitAlgorithm,
    charge: ChargeRule,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "token bucket",
        profile: OPENAI,
        client: Algorithm::TokenBucket,
        provider: tollgate_simulate::LimitAlgorithm::TokenBucket,
        charge: ChargeRule::OpenAi,
    },
    Scenario {
        name: "sliding window",
        profile: OPENAI,
        client: Algorithm::SlidingWindow,
        provider: tollgate_simulate::LimitAlgorithm::SlidingWindow,
        charge: ChargeRule::OpenAi,
    },
    Scenario {
        name: "fixed window",
        profile: OPENAI,
        client: Algorithm::FixedWindow,
        provider: tollgate_simulate::LimitAlgorithm::FixedWindow,
        charge: ChargeRule::OpenAi,
    },
    Scenario {
        name: "token bucket, by usage",
        profile: COMPATIBLE_USAGE,
        client: Algorithm::TokenBucket,
        provider: tollgate_simulate::LimitAlgorithm::TokenBucket,
        charge: ChargeRule::Usage,
    },
];

#[tokio::main]
async fn main() {
    let Some(traces) = std::env::var_os("TOLLGATE_TRACES").map(PathBuf::from) else {
        println!("left out: TOLLGATE_TRACES is not set to the folder of the traces");
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
            // Apart, so that the first bursts of four jobs don't wait for two processors.
            tokio::time::sleep(Duration::from_secs(6 * number as u64)).await;
            run(scenario, folder, input).await;
        }
    });
    futures(jobs).await;
}

/// Runs all at once, and each to its end.
async fn futures(jobs: impl Iterator<Item = impl Future<Output = ()>>) {
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
        give_up_after: Job::GIVE_UP_AFTER,
        ordered: false,
        endpoint: "/v1/chat/completions".to_owned(),
        resume: Resume::default(),
        progress: false,
    };
    let report = job.run(&Stop::new()).await.expect("a job that runs").report;
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
    server.shutdown().await.expect("a server that stops");
}

/// Prompts of four characters a token, with `max_tokens` half as long again as what comes.
fn requests(traces: &Path) -> String {
    let file = traces.join("azure-llm-2023-conversation.csv");
    let text = std::fs::read_to_string(&file).expect("the conversation trace");
    let mut lines = String::new();
    for (number, row) in text.lines().skip(1).take(REQUESTS).enumerate() {
        let mut sizes = row.rsplit(',').map(|size| size.trim().parse::<usize>().expect("a size"));
        let (output, input) = (sizes.next().expect("a column"), sizes.next().expect("a column"));
        let prompt = "word".repeat(input);
        let most = output + output / 2 + 1;
        writeln!(
            lines,
            r#"{{"custom_id":"r{number}","method":"POST","url":"/v1/chat/completions","body":{{"model":"gpt-4o","messages":[{{"role":"user","content":"{prompt}"}}],"max_tokens":{most},"metadata":{{"output_tokens":"{output}"}}}}}}"#
        )
        .expect("a string grows");
    }
    lines
}
