//! Inputs that can't be read and outputs that can't be written.

use std::process::Stdio;

use paceline_cli::batch::{Job, JobError, Stop};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::rig::{Folder, KEY, ended, lines, output_of, reason, run, squeezed};
use super::scripted::{Reply, Scripted};

#[tokio::test]
async fn missing_input_creates_no_output() {
    let folder = Folder::with(&[]);
    std::fs::remove_file(folder.path("in.jsonl")).expect("the input is removed");
    let output = output_of(folder.batch("--base-url http://127.0.0.1:1 --rpm 1")).await;
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("in.jsonl: No such file"), "{output:?}");
    assert_eq!(folder.listing(), [""; 0]);
}

#[cfg(unix)]
#[tokio::test]
async fn unreadable_input_stops_run() {
    let folder = Folder::with(&[]);
    let input = folder.path("folder");
    std::fs::create_dir(&input).expect("a folder");
    let job = Job { input, ordered: true, ..folder.job("http://127.0.0.1:1") };
    let ended = run(&job).await;
    assert!(reason(&ended).contains("folder: cannot read to the end: "), "{ended:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn piped_input_is_read_once() {
    let folder = Folder::with(&[]);
    let server = Scripted::start(|_| Reply::ok()).await;
    let mut command = super::rig::paceline();
    command.current_dir(folder.path("")).env("OPENAI_API_KEY", KEY).stdin(Stdio::piped());
    command.args(["batch", "/dev/stdin", "-o", "out.jsonl", "--rpm", "100", "--base-url"]);
    let mut child = command.arg(server.base()).spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(lines(5).join("\n").as_bytes()).await.expect("the command reads stdin");
    drop(stdin);
    assert_eq!(ended(child).await.code, Some(0));
    assert_eq!(folder.results().len(), 5);
}

/// The run must not wait for the end of an idle pipe.
#[cfg(unix)]
#[tokio::test]
async fn interrupt_ends_run_with_open_pipe() {
    let folder = Folder::with(&[]);
    let server = Scripted::start(|_| Reply::ok()).await;
    let mut command = super::rig::paceline();
    command.current_dir(folder.path("")).env("OPENAI_API_KEY", KEY).stdin(Stdio::piped());
    command.args(["batch", "/dev/stdin", "-o", "out.jsonl", "--rpm", "100", "--base-url"]);
    let mut child = command.arg(server.base()).spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let line = lines(1).remove(0) + "\n";
    stdin.write_all(line.as_bytes()).await.expect("the command reads stdin");
    super::rig::until("the result is written", || folder.written() == 1).await;
    super::rig::signal(&child, "-INT");
    assert_eq!(ended(child).await.code, Some(130));
    drop(stdin);
}

#[tokio::test]
async fn unusable_output_fails_before_sending() {
    let folder = Folder::with(&lines(1));
    let server = Scripted::start(|_| Reply::ok()).await;
    std::fs::write(folder.path("out.jsonl"), "my own notes\n").expect("the file is written");
    let job = folder.job(server.base());
    let refused = job.run(&Stop::new()).await.expect_err("the output is foreign");
    assert!(matches!(refused, JobError::Output(_)), "{refused:?}");
    assert_eq!(server.received(), 0);
}

#[tokio::test]
async fn unwritable_report_fails_before_sending() {
    let folder = Folder::with(&lines(1));
    let server = Scripted::start(|_| Reply::ok()).await;
    let arguments = format!("--base-url {} --rpm 1 --report none/r.json", server.base());
    let output = output_of(folder.batch(&arguments)).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{output:?}");
    assert!(output.stderr.contains("none/r.json: cannot write"), "{output:?}");
    assert_eq!((server.received(), folder.listing()), (0, vec!["in.jsonl".to_owned()]));
}

/// A limit on the file size simulates a full disk.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn full_disk_stops_run_and_next_run_continues() {
    let folder = Folder::with(&lines(200));
    let server = Scripted::start(|_| Reply::ok()).await;
    let arguments = format!("--base-url {} --rpm 10000 --max-in-flight 4", server.base());
    let mut command = Command::new("sh");
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; exec '{}' batch in.jsonl -o out.jsonl {arguments}",
        env!("CARGO_BIN_EXE_paceline")
    );
    command.args(["-c", &script]).current_dir(folder.path("")).env("OPENAI_API_KEY", KEY);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let stopped = output_of(command).await;
    assert_eq!(stopped.code, Some(2), "{stopped:?}");
    assert!(stopped.stderr.contains("cannot write"), "{stopped:?}");
    assert!(stopped.stderr.contains("out.jsonl"), "{stopped:?}");
    let (written, sent) = (folder.results().len(), server.received());
    assert!(written > 0 && sent <= written + 2 * 4, "{written} written, {sent} sent");
    let counted = format!("succeeded {written} ");
    assert!(squeezed(&stopped.stdout).contains(&counted), "{stopped:?}");

    let next = output_of(folder.batch(&arguments)).await;
    assert_eq!((next.code, folder.results().len()), (Some(0), 200), "{next:?}");
}
