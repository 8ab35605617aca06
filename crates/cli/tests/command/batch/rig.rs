//! A folder with an input and an output, and what runs in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use http::HeaderMap;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tollgate::provider::COMPATIBLE;
use tollgate::quota::Quota;
use tollgate_cli::batch::{Halt, Job, Resume, RunResult, Stop};
use tollgate_simulate::{Settings, SimulatedServer};

/// An API key, which must not be printed.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef-s3cret";

pub(crate) struct Folder(TempDir);

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    /// A folder with these lines in `in.jsonl`.
    pub(crate) fn with(lines: &[String]) -> Self {
        let folder = Self(TempDir::new().expect("a folder"));
        fs::write(folder.path("in.jsonl"), lines.join("\n")).expect("the input is written");
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A job from `in.jsonl` to `out.jsonl`: no limits, no retries, no key.
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
            give_up_after: Job::GIVE_UP_AFTER,
            ordered: false,
            endpoint: "/v1/chat/completions".to_owned(),
            resume: Resume::default(),
            progress: false,
        }
    }

    /// `tollgate batch in.jsonl -o out.jsonl`, with these arguments besides.
    pub(crate) fn batch(&self, rest: &str) -> Command {
        let mut command = tollgate();
        command.current_dir(self.0.path()).env("OPENAI_API_KEY", KEY);
        command.args(["batch", "in.jsonl", "-o", "out.jsonl"]).args(rest.split_whitespace());
        command
    }

    /// The lines of `out.jsonl`, each of them whole.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines_of("out.jsonl")
    }

    pub(crate) fn lines_of(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).expect("the file is there, and text");
        assert!(text.is_empty() || text.ends_with('\n'), "the last line is torn");
        text.lines().map(|line| serde_json::from_str(line).expect("every line parses")).collect()
    }

    /// The lines of `out.jsonl` by their id, which is that of no other line.
    pub(crate) fn results(&self) -> BTreeMap<String, Value> {
        let mut results = BTreeMap::new();
        for line in self.lines() {
            let id = line["custom_id"].as_str().expect("an id").to_owned();
            assert!(results.insert(id.clone(), line).is_none(), "{id} stands there twice");
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
        let entries = fs::read_dir(self.0.path()).expect("the folder is there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// The command, with nothing on stdin, killed when it is dropped.
pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    // Not the developer's own.
    command.env("XDG_CONFIG_HOME", "/nowhere").env_remove("TOLLGATE_CONFIG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// A text with one space where it has many.
pub(crate) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits for the end of a command.
pub(crate) async fn output_of(mut command: Command) -> CommandOutput {
    ended(command.spawn().expect("it starts")).await
}

pub(crate) async fn ended(child: Child) -> CommandOutput {
    let output = tokio::time::timeout(DEADLINE, child.wait_with_output());
    let output = output.await.expect("it ends in time").expect("it is waited for");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
    CommandOutput {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs a job that nobody stops, to its end.
pub(crate) async fn run(job: &Job) -> RunResult {
    let stop = Stop::new();
    let ended = tokio::time::timeout(DEADLINE, job.run(&stop));
    ended.await.expect("it ends in time").expect("it can begin")
}

/// The reason why a run was stopped.
pub(crate) fn reason(ended: &RunResult) -> &str {
    match &ended.halt {
        Some(Halt::Failed(reason)) => reason,
        other => panic!("stopped by {other:?}"),
    }
}

/// Polls until the condition holds.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let polls = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(DEADLINE, polls).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Sends a signal to a process of this test.
pub(crate) fn signal(child: &Child, name: &str) {
    let id = child.id().expect("it has not ended").to_string();
    let sent = std::process::Command::new("kill").args([name, &id]).status().expect("kill runs");
    assert!(sent.success());
}

pub(crate) async fn simulated(settings: Settings) -> (SimulatedServer, String) {
    let server =
        SimulatedServer::bind(settings, ([127, 0, 0, 1], 0).into()).await.expect("a free port");
    let base = format!("http://{}", server.addr());
    (server, base)
}

/// The body of a chat that OpenAI's rule charges `tokens` for, answered by 5 tokens.
pub(crate) fn chat(model: &str, tokens: u64) -> Value {
    json!({
        "model": model,
        "messages": [{"role": "user", "content": "Why is the sky blue in the day, not at night?!!!"}],
        "max_tokens": tokens - 12 - 1 - 1,
        "metadata": {"output_tokens": "5"},
    })
}

/// A Batch line. The id stands in the body too, where a server can see it.
pub(crate) fn line(id: &str, mut body: Value) -> String {
    body["user"] = id.into();
    json!({"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body})
        .to_string()
}

/// Lines `r0`, `r1`, ... of 100 tokens each.
pub(crate) fn lines(count: usize) -> Vec<String> {
    (0..count).map(|n| line(&format!("r{n}"), chat("gpt-4o", 100))).collect()
}

/// The timeout of a test that hangs.
const DEADLINE: Duration = Duration::from_secs(100);
