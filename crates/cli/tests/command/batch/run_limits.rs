//! Runs delayed by limits, without 429s.

use paceline::provider::{AZURE, OLLAMA, OPENAI};
use paceline::quota::{Algorithm, Quota};
use paceline_cli::batch::report::Report;
use paceline_cli::batch::{Job, Stop};
use paceline_config::Config;
use paceline_simulate::{Counters, Settings};
#[cfg(unix)]
use paceline_testing::process::InteractiveProcess;
use paceline_testing::servers::Redis;
use serde_json::Value;

use super::rig::{Folder, chat, line, output_of, run, simulated, squeezed};
use super::scripted::{Reply, Scripted};

/// Returns a folder with 61 lines of 1,000 tokens each: a limit of 60,000 admits 58,800 tokens
/// immediately and the rest within 2.2 s.
fn folder_above_burst() -> Folder {
    let lines: Vec<_> = (0..61).map(|n| line(&format!("r{n}"), chat("gpt-4o", 1_000))).collect();
    Folder::with(&lines)
}

/// Asserts that all `count` lines succeeded and that the report equals the counters of the server.
fn assert_accounts(folder: &Folder, count: u64, report: &Report, server: &Counters) {
    let results = folder.results();
    assert_eq!(results.len() as u64, count);
    for line in results.values() {
        assert_eq!(
            (line["response"]["status_code"].as_u64(), &line["error"]),
            (Some(200), &().into())
        );
        assert_eq!(line["response"]["body"]["usage"]["completion_tokens"], 5, "{line}");
    }
    assert_eq!((server.received, server.admitted, server.refused), (count, count, 0));
    assert_eq!((report.requests, report.succeeded, report.failed), (count, count, 0));
    assert_eq!((report.skipped, report.retries, report.rate_limited), (0, 0, 0));
    assert_eq!(report.input_tokens, server.input_tokens);
    assert_eq!(report.output_tokens, server.output_tokens);
    assert_eq!(report.charged_tokens, server.charged_tokens);
}

/// Runs a job with the OpenAI profile against a server with these limits. Returns its report.
async fn run_against(folder: &Folder, quota: Quota, settings: Settings, count: u64) -> Report {
    let (server, base) = simulated(settings).await;
    let job = Job { quota, profile: OPENAI, ..folder.job(&base) };
    let ended = run(&job).await;
    assert_eq!(ended.halt, None);
    let stats = server.shutdown().await.expect("the server shuts down");
    assert_accounts(folder, count, &ended.report, &stats.total);
    ended.report
}

fn assert_waited(report: &Report) {
    // Both are computed in virtual time.
    assert!((2.19..2.21).contains(&report.ideal_s), "{report}");
    assert_eq!(report.estimate_error, Some(0.0));
    assert!(report.wait_p99_s > 0.0 && report.elapsed_s > 2.0, "{report}");
    assert!(report.utilization.is_some_and(|share| share > 0.0 && share <= 1.0), "{report}");
}

#[tokio::test]
async fn azure_deployment_in_base_url_is_key() {
    let folder = Folder::with(&[line("r0", chat("gpt-4o", 100))]);
    let server = Scripted::start(|_| Reply::ok()).await;
    let base = format!("{}/openai/deployments/mine", server.base());
    let job = Job { profile: AZURE, quota: Quota::new().rpm(100), ..folder.job(&base) };
    assert_eq!(job.plan().expect("a plan").models.keys().collect::<Vec<_>>(), ["mine"]);
    let limiter = job.limiter().expect("limits");
    job.run_with(limiter.clone(), &Stop::new()).await.expect("the run starts");
    assert_eq!(limiter.state().keys(), ["mine"]);
}

#[tokio::test]
async fn job_above_burst_waits_without_429() {
    let folder = folder_above_burst();
    let settings = Settings::default().with_tpm(60_000);
    let report = run_against(&folder, Quota::new().tpm(60_000), settings, 61).await;
    assert_waited(&report);
}

#[tokio::test]
async fn command_waits_for_limits_and_writes_report() {
    let folder = folder_above_burst();
    let (server, base) = simulated(Settings::default().with_tpm(60_000)).await;
    let arguments = format!("--base-url {base} --provider openai --tpm 60000 --report r.json");
    let output = output_of(folder.batch(&arguments)).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let report = std::fs::read_to_string(folder.path("r.json")).expect("a report");
    let report: Report = serde_json::from_str(&report).expect("the report is JSON");
    assert_eq!(output.stdout.trim_end(), report.to_string());
    let stats = server.shutdown().await.expect("the server shuts down");
    assert_accounts(&folder, 61, &report, &stats.total);
    assert_waited(&report);
}

#[tokio::test]
async fn response_is_stored_unchanged() {
    let folder = Folder::with(&[line("r0", chat("gpt-4o", 100))]);
    let (_server, base) = simulated(Settings::default()).await;
    run(&folder.job(&base)).await;
    let line = &folder.lines()[0];
    let body = &line["response"]["body"];
    assert_eq!((&body["object"], &body["model"]), (&"chat.completion".into(), &"gpt-4o".into()));
    assert_eq!(body["choices"][0]["message"]["content"], "the fox may not eat ");
    assert!(line["response"]["request_id"].is_string(), "{line}");
    assert!(line["id"].as_str().is_some_and(|id| id.starts_with("batch_req_")), "{line}");
}

#[tokio::test]
async fn windows_admit_whole_amount_immediately() {
    let table = [
        (Algorithm::SlidingWindow, paceline_simulate::LimitAlgorithm::SlidingWindow),
        (Algorithm::FixedWindow, paceline_simulate::LimitAlgorithm::FixedWindow),
    ];
    for (algorithm, enforced) in table {
        let lines: Vec<_> =
            (0..30).map(|n| line(&format!("r{n}"), chat("gpt-4o", 1_000))).collect();
        let folder = Folder::with(&lines);
        let quota = Quota::new().rpm(30).tpm(30_000).with_algorithm(algorithm);
        let settings = Settings::default().with_rpm(30).with_tpm(30_000).with_algorithm(enforced);
        let report = run_against(&folder, quota, settings, 30).await;
        assert_eq!((report.ideal_s, report.utilization), (0.0, None), "{algorithm:?}");
    }
}

#[tokio::test]
async fn minute_and_day_limits_apply_together() {
    let folder = Folder::with(&super::rig::lines(40));
    let quota = Quota::new().rpm(60).tpm(5_000).rpd(50);
    let settings = Settings::default().with_rpm(60).with_tpm(5_000).with_rpd(50);
    let report = run_against(&folder, quota, settings, 40).await;
    assert_eq!(report.ideal_s, 0.0);
    assert!(squeezed(&report.to_string()).contains("utilization - "), "{report}");
}

#[tokio::test]
async fn each_model_has_separate_limits() {
    let models = ["gpt-4o", "gpt-4o-mini", "o3-mini"];
    let lines: Vec<_> =
        (0..27).map(|n| line(&format!("r{n}"), chat(models[n % 3], 1_000))).collect();
    let folder = Folder::with(&lines);
    let settings = Settings::default().with_tpm(10_000);
    let report = run_against(&folder, Quota::new().tpm(10_000), settings, 27).await;
    assert_eq!(
        report.ideal_s, 0.0,
        "27,000 tokens fit immediately only if each model has its own limit"
    );
}

#[tokio::test]
async fn request_above_capacity_fails_unsent() {
    let mut lines = super::rig::lines(3);
    lines.insert(1, line("big", chat("gpt-4o", 70_000)));
    let folder = Folder::with(&lines);
    let (server, base) = simulated(Settings::default().with_tpm(60_000)).await;
    let job = Job { quota: Quota::new().tpm(60_000), profile: OPENAI, ..folder.job(&base) };
    let ended = run(&job).await;
    assert_eq!((ended.report.succeeded, ended.report.failed), (3, 1));
    assert_eq!(server.stats().total.received, 3);
    let big = &folder.results()["big"];
    assert_eq!((&big["response"], &big["error"]["code"]), (&().into(), &"exceeds_capacity".into()));
    let message = "gpt-4o: the request needs 70000 tokens, the limit allows at most 60000; make the request smaller or raise the limit";
    assert_eq!(big["error"]["message"], message);

    // The line was not sent. A run with higher limits sends it.
    drop(server);
    let (server, base) = simulated(Settings::default().with_tpm(80_000)).await;
    let job = Job { quota: Quota::new().tpm(80_000), profile: OPENAI, ..folder.job(&base) };
    let ended = run(&job).await;
    assert_eq!((ended.report.skipped, ended.report.succeeded), (3, 1));
    assert_eq!((server.stats().total.received, folder.results().len()), (1, 4));
}

#[tokio::test]
async fn wait_above_max_wait_ends_run_without_failed_lines() {
    let folder = Folder::with(&super::rig::lines(5));
    let server = Scripted::start(|call| match call.number {
        0 => Reply::ok(),
        _ => Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after", "3600"),
    })
    .await;
    let arguments =
        format!("--base-url {} --rpm 1000 --max-in-flight 1 --max-wait 10m", server.base());
    let output = output_of(folder.batch(&arguments)).await;
    assert_eq!(output.code, Some(2), "{output:?}");
    assert_eq!(output.stderr.matches("gpt-4o: the provider asks to wait").count(), 1, "{output:?}");
    for part in ["gpt-4o: the next request would wait ", "longer than --max-wait (10m)"] {
        assert!(output.stderr.contains(part), "{part} is missing in {output:?}");
    }
    // Another request confirms the long delay, and one probe tests it.
    assert!((4..=5).contains(&server.received()), "{}", server.received());
    assert_eq!(folder.lines().len(), 1);
    assert!(folder.lines()[0]["error"].is_null());
}

#[tokio::test]
async fn wait_for_budget_above_max_wait_ends_run() {
    wait_for_budget_ends_run("").await;
}

#[tokio::test]
async fn wait_for_shared_budget_above_max_wait_ends_run() {
    let redis = Redis::start();
    wait_for_budget_ends_run(&format!(", cluster: {{redis: '{}', account: a}}", redis.url())).await;
}

/// Runs a job whose limits continue with `more`.
async fn wait_for_budget_ends_run(more: &str) {
    let folder = Folder::with(&super::rig::lines(50));
    let (_server, base) = simulated(Settings::default()).await;
    // Each line costs less than $0.001 at most.
    let config = format!("{{quotas: {{gpt-4o: {{usd_per_day: 0.002}}}}{more}}}");
    std::fs::write(folder.path("t.yaml"), config).unwrap();
    let arguments = format!(
        "--base-url {base}/v1 --provider openai --config t.yaml --max-in-flight 4 --max-wait 1m"
    );
    let output = output_of(folder.batch(&arguments)).await;
    assert_eq!(output.code, Some(2), "{output:?}");
    for part in ["usd in 24 h used; resuming in ", "longer than --max-wait (1m)"] {
        assert!(output.stderr.contains(part), "{part} is missing in {output:?}");
    }
    let sent = folder.lines();
    assert!(!sent.is_empty() && sent.len() < 50, "{} lines", sent.len());
    assert!(sent.iter().all(|line| line["error"].is_null()), "no line fails");
}

/// Starts `paceline simulate` in the folder, and returns the process and its URL.
#[cfg(unix)]
fn start_simulate(folder: &Folder, arguments: &str) -> (InteractiveProcess, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.current_dir(folder.path("")).args(["simulate", "--listen", "127.0.0.1:0"]);
    command.args(arguments.split_whitespace());
    let mut process = InteractiveProcess::start(&mut command);
    let line = process.read_line().expect("the address");
    let base = line.strip_prefix("listening on ").expect("an address");
    (process, format!("{base}/v1"))
}

/// Two models of a project, whose requests together cost several times what a window allows.
#[cfg(unix)]
#[tokio::test]
async fn limit_on_spending_is_kept_without_429() {
    let models = ["gpt-4o", "gpt-4o-mini"];
    let lines: Vec<_> = (0..60).map(|n| line(&format!("r{n}"), chat(models[n % 2], 100))).collect();
    let folder = Folder::with(&lines);
    // $0.60 per ten minutes is $0.002 per two seconds.
    let window = "{dimension: usd, limit: 0.002, window: 2s, algorithm: sliding_window}";
    let config = format!("quotas: {{\"gpt-*\": {{limits: [{window}], shared: true}}}}");
    std::fs::write(folder.path("paceline.yaml"), config).expect("a config");
    let arguments = "--latency-ms 0..50 --charge usd --usd 0.60 --window 2s --log replies.jsonl";
    let (mut process, base) = start_simulate(&folder, arguments);
    let arguments =
        format!("--base-url {base} --provider openai --config paceline.yaml --report r.json");
    let output = output_of(folder.batch(&arguments)).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(folder.results().values().all(|line| line["response"]["status_code"] == 200));
    process.guard().signal("-TERM");
    let ended = tokio::task::spawn_blocking(move || process.output()).await.expect("it ends");
    assert!(ended.status.success(), "{ended:?}");

    let log = folder.lines_of("replies.jsonl");
    let numbers =
        |reply: &Value| (reply["at"].as_f64().unwrap(), reply["micro_usd"].as_u64().unwrap());
    let spent: Vec<(f64, u64)> = log.iter().map(numbers).collect();
    let within = |from: f64| {
        let in_window = spent.iter().filter(move |(at, _)| (from..from + 2.0).contains(at));
        in_window.map(|(_, cost)| cost).sum::<u64>()
    };
    let most = spent.iter().map(|(from, _)| within(*from)).max();
    let total: u64 = spent.iter().map(|(_, cost)| cost).sum();
    assert!(log.iter().all(|reply| reply["status"] == 200), "{log:?}");
    assert_eq!(log.len(), 60);
    assert!(most <= Some(2_000) && total > 2_000, "{most:?}, {total} in total");
    let report = std::fs::read_to_string(folder.path("r.json")).expect("a report");
    let report: Report = serde_json::from_str(&report).expect("the report is JSON");
    assert_eq!(report.cost_usd, Some(total as f64 / 1e6));
    assert_eq!(report.rate_limited, 0);
}

/// The estimate of a run counts as the run does.
#[tokio::test]
async fn names_of_a_model_of_ollama_share_its_quota() {
    let names = ["llama3.2", "Llama3.2:latest", "library/llama3.2", "llama3.2"];
    let names = names.iter().enumerate();
    let lines: Vec<_> = names.map(|(n, name)| line(&format!("r{n}"), chat(name, 100))).collect();
    let folder = Folder::with(&lines);
    let server = Scripted::start(|_| Reply::ok()).await;
    let config = Config::parse("quotas: {'Library/Llama3.2': {rpd: 3}}").expect("a configuration");
    let (config, max_wait) = (Some(config), Some(std::time::Duration::ZERO));
    let base = folder.job(server.base());
    let job = Job { profile: OLLAMA, config, max_wait, quota: Quota::new(), ..base };
    let plan = job.plan().expect("an estimate");
    let models: Vec<_> =
        plan.models.iter().map(|(name, (requests, _))| (&**name, *requests)).collect();
    assert_eq!((models, plan.unlimited), (vec![("Library/Llama3.2", 4)], 0));
    assert!(plan.duration.as_secs() > 80_000, "{plan}");
    let ended = run(&job).await;
    assert_eq!((ended.report.succeeded, server.received()), (3, 3), "{}", ended.report);
}
