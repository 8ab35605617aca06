//! Installation of SDKs, and runs of their scripts.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Returns the installation, made by one process at a time, or prints the reason and returns `None` if
/// that fails.
///
/// # Panics
/// Panics if the installation fails and `CI` is `true`.
pub(super) fn installed(
    what: &str,
    install: impl FnOnce() -> Result<PathBuf, String>,
) -> Option<PathBuf> {
    let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sdk-{what}.lock"));
    let lock = File::create(lock).and_then(|lock| lock.lock().map(|()| lock));
    match lock.map_err(|error| error.to_string()).and_then(|_lock| install()) {
        Ok(path) => Some(path),
        Err(reason) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("the {what} SDKs can't be installed: {reason}")
        }
        Err(reason) => {
            println!("left out: the {what} SDKs can't be installed: {reason}");
            None
        }
    }
}

/// Runs a script, and returns the JSON lines that it prints.
pub(super) async fn output(command: Command, script: &str, env: &[(&str, String)]) -> Vec<Value> {
    let output = tokio::process::Command::from(command)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the interpreter starts");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{script} fails:\n{out}\n{err}");
    let line = |line: &str| serde_json::from_str(line).expect("a line is JSON");
    out.lines().map(line).collect()
}

pub(super) fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let failure = || format!("{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output.status.success().then_some(()).ok_or_else(failure)
}

/// Returns the folder of the scripts.
pub(super) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
