//! Helpers for batch tests: a directory with an input and an output, and commands that run in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use http::HeaderMap;
use paceline::provider::COMPATIBLE;
use paceline::quota::Quota;
use paceline_cli::batch::{Halt, Job, Resume, RunResult, Stop};
use paceline_simulate::{Settings, SimulatedServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

pub(crate) use crate::cli::rig::CommandOutput;

/// An API key, which must not be printed.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef-s3cret";

pub(crate) struct Folder(TempDir);

impl Folder {
    /// Returns a directory with these lines in `in.jsonl`.
    pub(crate) fn with(lines: &[String]) -> Self {
        let folder = Self(TempDir::new().expect("a folder"));
        fs::write(folder.path("in.jsonl"), lines.join("\n")).expect("the input is written");
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a job from `in.jsonl` to `out.jsonl` with a high limit, without retries and API key.
    pub(crate) fn job(&self, base: &str) -> Job {
        Job {
            input: self.path("in.jsonl"),
            output: self.path("out.jsonl"),
            errors: None,
            base: base.parse().expect("a base URL"),
            headers: HeaderMap::new(),
            profile: COMPATIBLE,
            quota: Quota::new().rpm(1_000_000),
            config: None,
            max_in_flight: 64,
            retries: 0,
            timeout: Job::TIMEOUT,
            max_wait: None,
            priority: None,
            give_up_after: Job::GIVE_UP_AFTER,
            ordered: false,
            endpoint: "/v1/chat/completions".to_owned(),
            resume: Resume::default(),
            progress: false,
        }
    }

    /// Returns the command `paceline batch in.jsonl -o out.jsonl` with more arguments.
    pub(crate) fn batch(&self, rest: &str) -> Command {
        let mut command = paceline();
        command.current_dir(self.0.path()).env("OPENAI_API_KEY", KEY);
        command.args(["batch", "in.jsonl", "-o", "out.jsonl"]).args(rest.split_whitespace());
        command
    }

    /// Returns the lines of `out.jsonl`, all of which must be complete.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines_of("out.jsonl")
    }

    pub(crate) fn lines_of(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).expect("the file is UTF-8");
        assert!(text.is_empty() || text.ends_with('\n'), "the last line is incomplete");
        text.lines().map(|line| serde_json::from_str(line).expect("every line parses")).collect()
    }

    /// Returns the lines of `out.jsonl` by id; every id must be unique.
    pub(crate) fn results(&self) -> BTreeMap<String, Value> {
        let mut results = BTreeMap::new();
        for line in self.lines() {
            let id = line["custom_id"].as_str().expect("an id").to_owned();
            assert!(results.insert(id.clone(), line).is_none(), "{id} is a duplicate");
        }
        results
    }

    /// Returns the number of complete lines in `out.jsonl`.
    pub(crate) fn written(&self) -> usize {
        let text = fs::read(self.path("out.jsonl")).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Returns the content of all files in the directory except the input.
    pub(crate) fn everything_written(&self) -> String {
        let names = self.listing().into_iter().filter(|name| name != "in.jsonl");
        names.map(|name| fs::read_to_string(self.path(&name)).unwrap_or_default()).collect()
    }

    pub(crate) fn listing(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder is readable");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Returns the command with an empty stdin; the process is killed on drop.
pub(crate) fn paceline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    // Ignores the developer's configuration.
    command.env("XDG_CONFIG_HOME", "/nowhere").env_remove("PACELINE_CONFIG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Replaces each run of whitespace with one space.
pub(crate) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits for the end of a command.
pub(crate) async fn output_of(mut command: Command) -> CommandOutput {
    ended(command.spawn().expect("the command starts")).await
}

pub(crate) async fn ended(child: Child) -> CommandOutput {
    let output = tokio::time::timeout(DEADLINE, child.wait_with_output());
    let output = output.await.expect("the run ends in time");
    CommandOutput::from(output.expect("the process is awaited"))
}

/// Runs a job to its end.
pub(crate) async fn run(job: &Job) -> RunResult {
    let stop = Stop::new();
    let ended = tokio::time::timeout(DEADLINE, job.run(&stop));
    ended.await.expect("the run ends in time").expect("the run starts")
}

/// Returns the reason why a run was stopped.
pub(crate) fn reason(ended: &RunResult) -> &str {
    match &ended.halt {
        Some(Halt::Failed(reason)) => reason,
        other => panic!("stopped by {other:?}"),
    }
}

/// Polls until the condition holds.
pub(crate) async fn until(description: &str, mut condition: impl FnMut() -> bool) {
    let polls = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(DEADLINE, polls)
        .await
        .unwrap_or_else(|_| panic!("timed out: {description}"));
}

/// Sends a signal to a process of this test.
pub(crate) fn signal(child: &Child, name: &str) {
    let id = child.id().expect("the process runs").to_string();
    let sent = std::process::Command::new("kill").args([name, &id]).status().expect("kill runs");
    assert!(sent.success());
}

pub(crate) async fn simulated(settings: Settings) -> (SimulatedServer, String) {
    let server =
        SimulatedServer::bind(settings, ([127, 0, 0, 1], 0).into()).await.expect("a free port");
    let base = format!("http://{}", server.addr());
    (server, base)
}

/// Returns the body of a chat request that OpenAI's rule charges with `tokens`; its response has 5
/// tokens.
pub(crate) fn chat(model: &str, tokens: u64) -> Value {
    json!({
        "model": model,
        "messages": [{"role": "user", "content": "Why is the sky blue in the day, not at night?!!!"}],
        "max_tokens": tokens - 12 - 1 - 1,
        "metadata": {"output_tokens": "5"},
    })
}

/// Returns a Batch line. The body contains the id too, for the server.
pub(crate) fn line(id: &str, mut body: Value) -> String {
    body["user"] = id.into();
    json!({"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body})
        .to_string()
}

/// Returns the lines `r0`, `r1`, ... of 100 tokens each.
pub(crate) fn lines(count: usize) -> Vec<String> {
    (0..count).map(|n| line(&format!("r{n}"), chat("gpt-4o", 100))).collect()
}

/// The timeout of each wait.
const DEADLINE: Duration = Duration::from_secs(100);
