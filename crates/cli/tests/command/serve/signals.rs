//! Signals to `paceline serve`, and its saved state.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::command::LoggedServer;
use super::command::eventually;
use crate::cli::rig::TestHome;
use paceline_testing::http::{HttpReply, http1};
use paceline_testing::process::ChildGuard;

/// A daily quota, kept in a file.
const DAILY: &str = "quotas: {k: {rpd: 100}}\nstore: {yaml: state/state.yaml, flush: 1h}\n\
                     margin: {percent: 0, lag: 0s}\n";

fn command(home: &TestHome) -> Command {
    home.paceline("serve --config paceline.yaml --port 0")
}

/// Returns the usage of `k` in a newly started server.
async fn used(home: &TestHome) -> u64 {
    let served = LoggedServer::start(&mut command(home));
    let stats = HttpReply::of(http1().get(served.url("/v1/stats/rate%2Fk"))).await.json();
    tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
    stats["limits"][0]["used"].as_u64().unwrap_or_else(|| panic!("{stats}"))
}

#[tokio::test]
async fn stop_signals_save_usage() {
    for signal in ["-TERM", "-INT"] {
        let home = TestHome::new();
        home.write("paceline.yaml", DAILY);
        home.write("state/.keep", "");
        let mut served = LoggedServer::start(&mut command(&home));
        for _ in 0..51 {
            assert_eq!(served.status("/rate/k").await, 200);
        }
        // None of these signals ends the server.
        for ignored in ["-HUP", "-USR1", "-USR2", "-QUIT", "-ALRM"] {
            served.signal(ignored);
        }
        eventually(async || served.logged("SIGALRM")).await;
        assert_eq!(served.status("/rate/k").await, 200);
        served.signal(signal);
        let output = tokio::task::spawn_blocking(|| served.ended()).await.unwrap();
        assert_eq!(output.code, Some(0), "{signal}: {output:?}");
        assert_eq!(used(&home).await, 52, "{signal}");
    }
}

#[tokio::test]
async fn interrupted_drain_saves_usage() {
    let home = TestHome::new();
    home.write("paceline.yaml", &format!("{DAILY}serve: {{drain: 1h}}\n"));
    home.write("state/.keep", "");
    let mut served = LoggedServer::start(&mut command(&home));
    assert_eq!(served.status("/rate/k").await, 200);
    // A body that is never sent keeps the request in progress.
    let mut wire = paceline_testing::wire::Wire::connect(served.addr()).await.unwrap();
    let head =
        b"POST /v1/reserve HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
                 Content-Length: 9\r\n\r\n";
    wire.send(head).await.unwrap();
    let debug = served.url("/healthz");
    eventually(async || HttpReply::of(http1().get(&debug)).await.status == 200).await;
    served.signal("-TERM");
    let gone = async || http1().get(served.url("/healthz")).send().await.is_err();
    eventually(gone).await;
    served.signal("-INT");
    let output = tokio::task::spawn_blocking(|| served.ended()).await.unwrap();
    assert_eq!(output.code, Some(130), "{output:?}");
    assert_eq!(used(&home).await, 1);
}

#[tokio::test]
async fn unwritable_state_fails_exit() {
    let home = TestHome::new();
    home.write("paceline.yaml", DAILY);
    home.write("state/.keep", "");
    let mut served = LoggedServer::start(&mut command(&home));
    assert_eq!(served.status("/rate/k").await, 200);
    fs::remove_dir_all(home.path("state")).unwrap();
    // A file in place of the directory.
    home.write("state", "");
    served.signal("-TERM");
    let output = tokio::task::spawn_blocking(|| served.ended()).await.unwrap();
    assert_eq!(output.code, Some(1), "{output:?}");
    let is_reported = output.stderr.lines().any(|line| {
        line.starts_with("paceline: ") && line.contains("state.yaml") && line.contains("not saved")
    });
    assert!(is_reported, "{output:?}");
}

#[tokio::test]
async fn sighup_reloads_configuration_and_logs_result() {
    let home = TestHome::new();
    let quota =
        |most: u32| format!("quotas: {{k: {{rpd: {most}}}}}\nmargin: {{percent: 0, lag: 0s}}\n");
    home.write("paceline.yaml", &quota(1));
    let mut served = LoggedServer::start(&mut command(&home));
    assert_eq!([served.status("/rate/k").await, served.status("/rate/k").await], [200, 429]);

    served.signal("-HUP");
    eventually(async || served.logged("SIGHUP: the configuration has not changed")).await;

    home.write("paceline.yaml", &quota(2));
    served.signal("-HUP");
    eventually(async || served.logged("SIGHUP: configuration reloaded")).await;
    assert!(served.logged("quotas.k"));
    assert_eq!([served.status("/rate/k").await, served.status("/rate/k").await], [200, 429]);

    // An invalid file changes nothing; each signal logs the error again.
    home.write("paceline.yaml", "quotas: {k: {rpd: many}}");
    for times in 1..=2 {
        served.signal("-HUP");
        eventually(async || served.times("SIGHUP: invalid configuration") == times).await;
    }
    assert!(served.logged("quotas.k.rpd"));
    assert_eq!(served.status("/rate/k").await, 429);

    home.write("paceline.yaml", &quota(3));
    served.signal("-HUP");
    eventually(async || served.status("/rate/k").await == 200).await;
    let output = tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
    assert!(!output.contains("panic"), "{output}");
}

/// Replaces a file by a named pipe, whose reader waits for a writer.
fn replace_by_pipe(path: &Path) {
    let _ = fs::remove_file(path);
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("`mkfifo` is installed").success());
}

#[tokio::test]
async fn configuration_replaced_by_pipe_is_refused() {
    let home = TestHome::new();
    home.write("paceline.yaml", "quotas: {k: {rpd: 1}}\n");
    let mut served = LoggedServer::start(&mut command(&home));
    replace_by_pipe(&home.path("paceline.yaml"));
    served.signal("-HUP");
    eventually(async || served.logged("SIGHUP: invalid configuration")).await;
    assert!(served.logged("not a regular file"));
    assert_eq!(served.status("/rate/k").await, 200);
    tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
}

#[test]
fn pipe_in_place_of_prices_or_state_is_an_error() {
    let home = TestHome::new();
    replace_by_pipe(&home.path("pipe.yaml"));
    for section in ["prices: {file: pipe.yaml}", "store: {yaml: pipe.yaml}"] {
        home.write("paceline.yaml", section);
        let output = crate::cli::rig::output_of(&mut command(&home));
        assert_eq!(output.code, Some(2), "{section}: {output:?}");
        assert!(output.stderr.contains("not a regular file"), "{section}: {output:?}");
    }
}

#[tokio::test]
async fn sigterm_ends_server_that_waits_for_configuration() {
    let home = TestHome::new();
    let path = home.path("paceline.yaml");
    replace_by_pipe(&path);
    let mut process = ChildGuard::start(&mut command(&home));
    // Opening the pipe succeeds when the server opens it.
    let opening =
        tokio::task::spawn_blocking(move || fs::OpenOptions::new().write(true).open(path));
    let writer = opening.await.unwrap().unwrap();
    process.signal("-TERM");
    let output = tokio::task::spawn_blocking(|| crate::cli::rig::ended(process)).await.unwrap();
    assert_eq!(output.code, Some(0), "{output:?}");
    drop(writer);
}

#[tokio::test]
async fn sighup_without_file_logs_notice() {
    let home = TestHome::new();
    let mut served = LoggedServer::start(&mut home.paceline("serve -m 1 -w 200000 -p 0"));
    served.signal("-HUP");
    eventually(async || served.logged("SIGHUP: no configuration file")).await;
    assert_eq!(served.status("/rate/k").await, 200);
    tokio::task::spawn_blocking(|| served.terminate()).await.unwrap();
}
