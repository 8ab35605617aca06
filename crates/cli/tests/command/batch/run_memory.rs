//! Runs over large files with bounded memory.

use std::fs;
use std::io::{BufWriter, Write};
use std::time::Duration;

use serde_json::json;

use super::rig::{Folder, chat, ended, line};
use super::scripted::{Reply, Scripted};

/// Writes `count` lines of about a kilobyte. Returns the length of each.
fn fill(folder: &Folder, count: usize) -> u64 {
    let mut body = chat("gpt-4o", 10_000);
    body["padding"] = json!("x".repeat(700));
    let file = fs::File::create(folder.path("in.jsonl")).expect("a file");
    let mut file = BufWriter::new(file);
    let mut length = 0;
    for n in 0..count {
        let line = line(&format!("request-{n:06}"), body.clone());
        length = line.len() as u64 + 1;
        writeln!(file, "{line}").expect("the file is written");
    }
    length
}

/// Returns the peak memory of a process in KiB; `None` after its end.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[tokio::test]
async fn hundred_thousand_lines_use_bounded_memory() {
    const LINES: usize = 100_000;
    let folder = Folder::with(&[]);
    let size = fill(&folder, LINES) * LINES as u64;
    assert!(size > 90 << 20);
    // No request fits the limit, so that none is sent.
    let child = folder.batch("--base-url http://127.0.0.1:1 --tpm 1000").spawn();
    let child = child.expect("the command starts");
    let process = child.id().expect("the process runs");
    let watch = async {
        let mut most = 0;
        while let Some(now) = peak(process) {
            most = now;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        most
    };
    let (most, output) = tokio::join!(watch, ended(child));
    assert_eq!((output.code, folder.written()), (Some(1), LINES), "{output:?}");
    assert!(most > 0 && most < 96 << 10, "{most} KiB for a file of {} KiB", size >> 10);
}

/// Returns the file offset of a process.
fn offset(process: u32, name: &str) -> Option<u64> {
    for entry in fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten() {
        if fs::read_link(entry.path()).is_ok_and(|path| path.ends_with(name)) {
            let number = entry.file_name().into_string().ok()?;
            let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()?;
            return info.lines().next()?.split_whitespace().nth(1)?.parse().ok();
        }
    }
    None
}

#[tokio::test]
async fn read_ahead_is_bounded() {
    const LINES: usize = 20_000;
    const AHEAD: u64 = 4_096;
    let folder = Folder::with(&[]);
    let length = fill(&folder, LINES);
    let server = Scripted::start(|_| Reply::ok().after(Duration::from_millis(10))).await;
    let arguments = format!("--base-url {} --rpm 0 --max-in-flight 8", server.base());
    let mut child = folder.batch(&arguments).spawn().expect("the command starts");
    let process = child.id().expect("the process runs");
    let mut furthest = 0;
    while folder.written() < 400 {
        if let Some(read) = offset(process, "in.jsonl") {
            furthest = read.max(furthest);
            // Includes the line that waits for memory, and the read buffer.
            let most = (folder.written() as u64 + AHEAD + 2) * length + (16 << 10);
            assert!(read <= most, "{} lines ahead", read / length);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    child.kill().await.expect("the process is killed");
    assert!(furthest > AHEAD * length, "the input is read ahead");
}
