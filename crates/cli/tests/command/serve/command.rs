//! Runs of `paceline serve`.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::process::Served;
use crate::cli::rig::{CommandOutput, TestHome};
use paceline_testing::http::{HttpReply, http1};
use paceline_testing::process::wrap_command;

/// A server whose standard error is captured.
pub(super) struct LoggedServer {
    served: Served,
    /// The captured standard error.
    output: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl LoggedServer {
    pub(super) fn start(command: &mut Command) -> Self {
        let mut served = Served::spawn(command);
        let (output, mut stderr) =
            (Arc::default(), served.process().guard().get_mut().stderr.take().unwrap());
        let reader = std::thread::spawn({
            let output = Arc::clone(&output);
            move || {
                let mut part = [0; 4096];
                while let Ok(read @ 1..) = stderr.read(&mut part) {
                    Mutex::<String>::lock(&output)
                        .push_str(&String::from_utf8_lossy(&part[..read]));
                }
            }
        });
        Self { served, output, reader }
    }

    pub(super) fn url(&self, path: &str) -> String {
        self.served.url(path)
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.served.addr()
    }

    /// Returns true if standard error contains the text.
    pub(super) fn logged(&self, text: &str) -> bool {
        self.output.lock().contains(text)
    }

    /// Returns the number of occurrences of the text in standard error.
    pub(super) fn times(&self, text: &str) -> usize {
        self.output.lock().matches(text).count()
    }

    /// Sends a signal, as `kill` does.
    pub(super) fn signal(&mut self, signal: &str) {
        self.served.process().guard().signal(signal);
    }

    /// Waits for the end of the process, with any exit code.
    pub(super) fn ended(self) -> CommandOutput {
        let output = self.served.ended();
        self.reader.join().unwrap();
        CommandOutput { stderr: self.output.lock().clone(), ..output }
    }

    pub(super) async fn status(&self, path: &str) -> u16 {
        HttpReply::of(http1().post(self.url(path))).await.status
    }

    /// Stops the server with SIGTERM. Returns its standard error.
    pub(super) fn terminate(self) -> String {
        self.served.terminate();
        self.reader.join().unwrap();
        self.output.lock().clone()
    }
}

/// Polls until the condition holds.
pub(super) async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    let polls = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), polls)
        .await
        .expect("the condition holds in time");
}

#[tokio::test]
async fn gocc_flags_start_server_and_sigterm_stops_server() {
    let home = TestHome::new();
    let served = LoggedServer::start(&mut home.paceline("serve -m 2 -w 200000 -p 0"));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(served.status("/rate/k").await);
    }
    assert_eq!(statuses, [200, 200, 429]);
    let waiter = http1().post(served.url("/rate/k?canWait=true"));
    let waiter = tokio::spawn(HttpReply::of(waiter));
    let debug = served.url("/debug/k");
    eventually(async || HttpReply::of(http1().get(&debug)).await.json()["NumWaiting"] == 1).await;
    let output = tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
    assert_eq!(waiter.await.unwrap().status, 503);
    // The key isn't in the log, since it may be a secret.
    let expected =
        [r#""message":"a request waits for longer than 30 s","key":"*""#, r#""status":503"#];
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 2, "{output}");
    assert!(lines.iter().zip(expected).all(|(line, part)| line.contains(part)), "{output}");
}

#[tokio::test]
async fn response_log_follows_flags_and_omits_secrets() {
    let home = TestHome::new();
    let mut command =
        home.paceline("serve -m 1 -w 200000 -p 0 --log2xx --log4xx --log-level=debug");
    let served = LoggedServer::start(command.env("PACELINE_TOKEN", "hunter2"));
    let post = |path: &str, token: &str| {
        let request = http1().post(served.url(path)).bearer_auth(token);
        HttpReply::of(request.header("x-correlation-id", "c-1"))
    };
    let granted = post("/rate/key-of-alice?canWait=false", "hunter2").await;
    post("/rate/key-of-alice?user=alice", "hunter2").await;
    post("/rate/key-of-alice", "swordfish").await;
    // A client that disconnects while it waits.
    let gone = tokio::spawn(post("/rate/key-of-alice?canWait=true", "hunter2"));
    let debug = served.url("/debug/key-of-alice");
    let look = || HttpReply::of(http1().get(&debug).bearer_auth("hunter2"));
    eventually(async || look().await.json()["NumWaiting"] == 1).await;
    gone.abort();
    eventually(async || served.output.lock().contains("\"status\":499")).await;
    let output = tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
    let lines: Vec<serde_json::Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_rate = |line: &&serde_json::Value| {
        line["message"] == "request finished" && line["route"] == "/rate/{key}"
    };
    let answered: Vec<_> = lines.iter().filter(of_rate).collect();
    let statuses: Vec<_> = answered.iter().map(|line| line["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 429, 401, 499]);
    for line in answered {
        assert_eq!(
            (line["route"].as_str(), line["method"].as_str()),
            (Some("/rate/{key}"), Some("POST"))
        );
        assert_eq!(line["correlation_id"], "c-1");
        assert!(line["latency_ms"].as_f64().unwrap() >= 0.0 && line["request_id"].is_string());
    }
    for secret in ["hunter2", "swordfish", "alice", granted.body.as_str()] {
        assert!(!output.contains(secret), "{secret} in {output}");
    }
}

#[tokio::test]
async fn responses_are_not_logged_by_default() {
    let home = TestHome::new();
    let served = LoggedServer::start(&mut home.paceline("serve -m 1 -p 0"));
    served.status("/rate/k").await;
    served.status("/nothing").await;
    let output = tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
    assert_eq!(output, "");
}

#[tokio::test]
async fn keys_file_is_reloaded_after_rename_link_and_error() {
    let home = TestHome::new();
    let keys = |most: u32| {
        format!("{{\"keys\": [{{\"key_pattern\": \"k\", \"max_requests_per_window\": {most}}}]}}")
    };
    home.write("a/keys.json", &keys(1));
    std::os::unix::fs::symlink("a", home.path("now")).unwrap();
    let command = "serve -w 200000 -p 0 --config-file now/keys.json";
    let served = LoggedServer::start(&mut home.paceline(command));
    assert_eq!([served.status("/rate/k").await, served.status("/rate/k").await], [200, 429]);
    let waiter = http1().post(served.url("/rate/k?canWait=true"));
    let waiter = tokio::spawn(HttpReply::of(waiter));
    let debug = served.url("/debug/k");
    eventually(async || HttpReply::of(http1().get(&debug)).await.json()["NumWaiting"] == 1).await;

    // The file is replaced by a rename; waiters follow the new limits.
    fs::rename(home.write("a/new.json", &keys(2)), home.path("a/keys.json")).unwrap();
    assert_eq!(waiter.await.unwrap().status, 200);
    assert_eq!(served.status("/rate/k").await, 429);

    // A symbolic link in its path is replaced, as by Kubernetes.
    home.write("b/keys.json", &keys(3));
    std::os::unix::fs::symlink("b", home.path("next")).unwrap();
    fs::rename(home.path("next"), home.path("now")).unwrap();
    eventually(async || served.status("/rate/k").await == 200).await;
    assert_eq!(served.status("/rate/k").await, 429);

    // An invalid file is logged and ignored; the next valid one applies.
    home.write("b/keys.json", "{\"keys\": [{\"key_pattern\": \"k\", \"window_millis\": 9}]}");
    eventually(async || served.output.lock().contains("must be from 10 to 3600000, not 9")).await;
    assert_eq!(served.status("/rate/k").await, 429);
    home.write("b/keys.json", &keys(4));
    eventually(async || served.status("/rate/k").await == 200).await;
    let output = tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
    assert!(!output.contains("panic"), "{output}");
}

/// Returns the command with a soft and a hard limit on open files.
#[cfg(unix)]
fn with_files(soft: u32, hard: u32, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    let limits = format!("ulimit -Sn {soft}; ulimit -Hn {hard}; exec \"$0\" \"$@\"");
    shell.args(["-c", &limits]).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    wrap_command(shell, command)
}

#[cfg(target_os = "linux")]
#[test]
fn open_file_limit_is_raised_for_bounds() {
    let home = TestHome::new();
    home.write("c.yaml", "serve: {bounds: {connections: 300}}");
    let command = home.paceline("serve --config c.yaml --port 0");
    for (hard, allowed, warned) in [(4_000, "428", false), (200, "200", true)] {
        let mut served = LoggedServer::start(&mut with_files(100, hard, &command));
        let process = served.served.process().guard().get_mut().id();
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        assert_eq!(line.split_whitespace().nth(3), Some(allowed), "{line}");
        let output = served.terminate();
        let is_warned =
            output.contains("\"needed\":428") && output.contains("serve.bounds.connections");
        assert_eq!(is_warned, warned, "{output}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn default_bound_of_connections_warns_of_no_file_limit() {
    let home = TestHome::new();
    let command = home.paceline("serve --port 0");
    let served = LoggedServer::start(&mut with_files(100, 4_000, &command));
    assert_eq!(served.terminate(), "");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn local_file_shortage_is_not_reported_as_upstream_error() {
    let home = TestHome::new();
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let up = upstream.local_addr().unwrap();
    let config = format!(
        "retry: {{attempts: 1}}\nserve: {{upstreams: {{up: {{base_url: 'http://{up}', provider: openai}}}}}}"
    );
    home.write("c.yaml", &config);
    let command = home.paceline("serve --config c.yaml --port 0");
    let served = LoggedServer::start(&mut with_files(64, 64, &command));
    let mut connections = Vec::new();
    let head = "POST /up/v1/files HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    for _ in 0..80 {
        // Connections with a request are not closed.
        let mut connection = TcpStream::connect(served.served.addr()).await.unwrap();
        let begun = format!("{head}content-length: 2\r\n\r\n{{");
        connection.write_all(begun.as_bytes()).await.unwrap();
        connections.push(connection);
    }
    eventually(async || served.output.lock().contains("failed to accept a connection")).await;
    let first = &mut connections[0];
    first.write_all(b"}").await.unwrap();
    let mut answer = String::new();
    first.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\"code\":\"too_many_open_files\""), "{answer}");
    assert!(answer.contains("ulimit -n") && !answer.contains("unreachable"), "{answer}");
    drop(connections);
    tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn idle_connections_make_room_at_the_file_limit() {
    let home = TestHome::new();
    home.write("c.yaml", "serve: {bounds: {head_timeout: 1h}}");
    let command = home.paceline("serve --config c.yaml --port 0");
    let served = LoggedServer::start(&mut with_files(64, 64, &command));
    let mut busy = TcpStream::connect(served.addr()).await.unwrap();
    let head = "POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let begun = format!("{head}connection: close\r\ncontent-length: 2\r\n\r\n{{");
    busy.write_all(begun.as_bytes()).await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(TcpStream::connect(served.addr()).await.unwrap());
    }
    let health = HttpReply::of(http1().get(served.url("/healthz")));
    let health = tokio::time::timeout(Duration::from_secs(60), health).await;
    assert_eq!(health.expect("an answer in time").status, 200);
    // A connection with a request stays open.
    busy.write_all(b"}").await.unwrap();
    let mut answer = String::new();
    busy.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
}

#[test]
fn invalid_values_are_rejected_at_start() {
    let home = TestHome::new();
    home.write(
        "keys.json",
        "{\"keys\": [{\"key_pattern\": \"(\", \"key_pattern_is_regex\": true}]}",
    );
    for (arguments, output) in [
        ("serve --window-millis -1000", "--window-millis: serve.window_millis"),
        ("serve -m 0", "--max-requests: serve.max_requests"),
        ("serve -p 70000", "--port: serve.listen"),
        ("serve -c keys.json", "keys.json:1:27: serve.keys[0].key_pattern"),
        ("serve -c nowhere.json", "nowhere.json: can't read the file"),
        ("serve -i http://a,http://b", "--instance-urls: instances don't forward requests"),
        ("serve --listen 0.0.0.0:0", "is reachable from other machines"),
    ] {
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments}");
        assert!(ended.stderr.contains(output), "{arguments}: {}", ended.stderr);
    }
}
