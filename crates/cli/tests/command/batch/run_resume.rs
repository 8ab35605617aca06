//! Runs that are killed, interrupted or started twice, and resumed.

use std::collections::BTreeSet;
use std::time::Duration;

use paceline::quota::Quota;
use paceline_cli::batch::{Halt, Job, Stop};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::rig::{Folder, ended, lines, output_of, run, signal, squeezed, until};
use super::scripted::{Reply, Scripted};

const IN_FLIGHT: usize = 8;

#[tokio::test]
async fn killed_run_resumes_without_loss_or_duplicates() {
    const LINES: usize = 300;
    let folder = Folder::with(&lines(LINES));
    let server = Scripted::start(|call| {
        Reply::ok().after(Duration::from_millis(1 + call.number as u64 * 7 % 9))
    })
    .await;
    let arguments =
        format!("--base-url {} --rpm 100000 --max-in-flight {IN_FLIGHT}", server.base());
    let mut seed = 0x2545_F491_u64;
    let mut finished = Vec::new();
    let mut kills = 0;
    loop {
        let mut child = folder.batch(&arguments).spawn().expect("the command starts");
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let goal = folder.written() + 1 + (seed >> 33) as usize % 60;
        if goal >= LINES {
            let last = ended(child).await;
            assert_eq!(last.code, Some(0), "{last:?}");
            break;
        }
        until("results are written", || folder.written() >= goal).await;
        child.kill().await.expect("the process is killed");
        kills += 1;
        finished.push((server.received(), finished_ids(&folder)));
    }
    assert!(kills >= 3, "only {kills}");
    let results = folder.results();
    assert_eq!(results.len(), LINES);
    assert!(results.values().all(|line| line["error"].is_null()));
    let calls = server.calls();
    assert!(calls.len() <= LINES + kills * IN_FLIGHT, "{} sent, {kills} kills", calls.len());
    for (at, ids) in finished {
        let again = calls[at..].iter().find(|call| ids.contains(&call.id));
        assert!(again.is_none(), "{again:?} was already finished");
    }
}

/// Returns the ids of complete lines; the last line may be incomplete.
fn finished_ids(folder: &Folder) -> BTreeSet<String> {
    let text = std::fs::read_to_string(folder.path("out.jsonl")).expect("text");
    let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    let id = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("every line parses");
        line["custom_id"].as_str().expect("an id").to_owned()
    };
    whole.lines().map(id).collect()
}

/// Three requests are held in flight while more are queued.
#[tokio::test]
async fn interrupted_run_awaits_in_flight_and_can_resume() {
    let folder = Folder::with(&lines(20));
    let server = Scripted::start(|call| match call.number {
        0 => Reply::ok(),
        _ => Reply::ok().held(),
    })
    .await;
    // Without limits in responses, only --max-in-flight limits the run.
    let arguments =
        format!("--base-url {} --max-in-flight 3 --quiet --report r.json", server.base());
    let mut child = folder.batch(&arguments).spawn().expect("the command starts");
    until("three are in flight", || server.received() == 4).await;
    signal(&child, "-INT");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut received = String::new();
    stderr.read_line(&mut received).await.expect("a notice on stderr");
    assert!(received.contains("waiting for requests in flight"), "{received}");
    server.release();
    let interrupted = ended(child).await;
    assert_eq!(interrupted.code, Some(130), "{interrupted:?}");
    assert!(squeezed(&interrupted.stdout).contains("succeeded 4 "), "{}", interrupted.stdout);
    assert_eq!((server.received(), folder.results().len()), (4, 4));
    assert!(folder.path("r.json").exists());

    let next = output_of(folder.batch(&arguments)).await;
    assert_eq!((next.code, server.received(), folder.results().len()), (Some(0), 20, 20));
}

#[tokio::test]
async fn second_interrupt_exits_immediately() {
    let folder = Folder::with(&lines(3));
    let server = Scripted::start(|_| Reply::ok().held()).await;
    let child = folder.batch(&format!("--base-url {} --rpm 9", server.base())).spawn();
    let mut child = child.expect("the command starts");
    until("all are in flight", || server.received() == 3).await;
    signal(&child, "-INT");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut output = String::new();
    while !output.contains("press Ctrl-C again") {
        let read = stderr.read_line(&mut output).await.expect("stderr is readable");
        assert!(read > 0, "stderr ended early: {output}");
    }
    signal(&child, "-INT");
    assert_eq!(ended(child).await.code, Some(130));
    server.release();
    assert_eq!(run(&folder.job(server.base())).await.report.succeeded, 3);
}

#[tokio::test]
async fn stopped_run_sends_no_queued_or_retried_requests() {
    let folder = Folder::with(&lines(10));
    let server = Scripted::start(|call| match call.number {
        0 => Reply::error(500, "server_error", "oh").header("retry-after", "50"),
        _ => Reply::ok(),
    })
    .await;
    let stop = Stop::new();
    let job = Job { quota: Quota::new().rpm(4), retries: 5, ..folder.job(server.base()) };
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { job.run(&stop).await }
    });
    until("the limit is used up", || folder.written() == 3).await;
    stop.halt(Halt::Interrupted);
    let ended = running.await.expect("no panic").expect("the run starts");
    assert_eq!((ended.report.requests, ended.report.retries), (3, 0), "{}", ended.report);
    assert_eq!((server.received(), folder.results().len()), (4, 3));
}

#[tokio::test]
async fn second_run_on_same_output_is_rejected() {
    let folder = Folder::with(&lines(2));
    let server = Scripted::start(|_| Reply::ok().held()).await;
    let arguments = format!("--base-url {} --rpm 100", server.base());
    let first = folder.batch(&arguments).spawn().expect("the command starts");
    until("the first run is in progress", || server.received() == 2).await;
    let second = output_of(folder.batch(&arguments)).await;
    assert_eq!((second.code, second.stdout.as_str()), (Some(2), ""), "{second:?}");
    assert!(second.stderr.contains("another run is writing"), "{second:?}");
    assert!(second.stderr.contains("out.jsonl"), "{second:?}");
    server.release();
    assert_eq!(ended(first).await.code, Some(0));
    assert_eq!((server.received(), folder.results().len()), (2, 2));
}

#[tokio::test]
async fn results_of_removed_lines_are_kept() {
    let folder = Folder::with(&lines(3));
    let server = Scripted::start(|_| Reply::ok()).await;
    run(&folder.job(server.base())).await;
    let repeated = r#"{"custom_id":"line-3","body":{}}"#;
    let raw = r#"{"model":"gpt-4o"}"#;
    let text = [&lines(2)[1], repeated, repeated, raw].join("\n");
    std::fs::write(folder.path("in.jsonl"), text).expect("the input is written");
    let next = run(&folder.job(server.base())).await;
    assert_eq!((next.report.skipped, next.report.succeeded, next.report.failed), (1, 2, 1));
    let results = folder.results();
    let ids: Vec<_> = results.keys().map(String::as_str).collect();
    assert_eq!(ids, ["line-3", "line-3-2", "line-4", "r0", "r1", "r2"]);
    assert_eq!(results["line-3-2"]["error"]["code"], "duplicate_custom_id");
    assert!(results["r1"]["error"].is_null());
}
