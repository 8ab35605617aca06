//! Outages of the server, which pause a job without failing lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use paceline::limiter::{Backend, Ending, ManualClock, Reservation, ReserveError, Reserving};
use paceline::quota::Quota;
use paceline_cli::batch::{Job, Stop};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStderr};

use super::rig::{CommandOutput, Folder, ended, lines, output_of, run, signal, until};
use super::scripted::{Reply, Scripted};
use paceline_testing::servers::Redis;

/// A command whose stderr is read while it runs.
struct RunningBatch {
    child: Child,
    stderr: BufReader<ChildStderr>,
    read: String,
}

impl RunningBatch {
    fn start(folder: &Folder, arguments: &str) -> Self {
        let mut child = folder.batch(arguments).spawn().expect("the command starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, stderr, read: String::new() }
    }

    /// Reads stderr up to a line that contains `text`.
    async fn until_printed(&mut self, text: &str) {
        while !self.read.contains(text) {
            let read = self.stderr.read_line(&mut self.read);
            let read = tokio::time::timeout(Duration::from_secs(60), read).await;
            let read = read.expect("the line is printed in time").expect("stderr is readable");
            assert!(read > 0, "ended without `{text}`: {}", self.read);
        }
    }

    async fn ended(mut self) -> CommandOutput {
        let output = ended(self.child).await;
        self.stderr.read_to_string(&mut self.read).await.expect("stderr is readable");
        CommandOutput { stderr: self.read, ..output }
    }
}

#[tokio::test]
async fn unreachable_server_is_awaited() {
    let folder = Folder::with(&lines(300));
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = closed.local_addr().expect("an address").to_string();
    drop(closed);
    let mut batch =
        RunningBatch::start(&folder, &format!("--base-url http://{address} --rpm 100000"));
    batch.until_printed("paused:").await;
    let text = format!("for gpt-4o to http://{address} failed (cannot connect: Connection refused");
    assert!(batch.read.contains(&text), "{}", batch.read);
    assert_eq!(folder.written(), 0, "no line has failed");

    let server = Scripted::start_at(&address, |_| Reply::ok()).await;
    let output = batch.ended().await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("resumed: the server responds again after "), "{output:?}");
    assert!(folder.results().values().all(|line| line["error"].is_null()));
    assert_eq!((folder.results().len(), server.received()), (300, 300));
}

/// Starts a server that answers the first `good` requests and then fails with `status` until `back`
/// is set.
async fn failing(status: u16, good: usize, back: &Arc<AtomicBool>) -> Scripted {
    let back = Arc::clone(back);
    Scripted::start(move |call| match call.number {
        number if number >= good && !back.load(Ordering::Relaxed) => {
            Reply::error(status, "down", "down")
        }
        _ if call.id == "bad" => Reply::error(500, "bad", "bad"),
        _ => Reply::ok(),
    })
    .await
}

#[tokio::test]
async fn outage_uses_no_retries() {
    for status in [500, 503] {
        let folder = Folder::with(&lines(300));
        let back = Arc::default();
        let server = failing(status, 100, &back).await;
        let arguments =
            format!("--base-url {} --rpm 100000 --max-in-flight 20 --retries 1", server.base());
        let mut batch = RunningBatch::start(&folder, &arguments);
        batch.until_printed("paused:").await;
        assert!(batch.read.contains(&format!("(HTTP {status}")), "{}", batch.read);
        until("the results are written", || folder.written() >= 100).await;
        back.store(true, Ordering::Relaxed);
        let output = batch.ended().await;
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(folder.results().len(), 300);
        assert!(folder.results().values().all(|line| line["error"].is_null()));
    }
}

/// A store that admits every request.
#[derive(Debug)]
struct Roomy;

impl Backend for Roomy {
    fn reserve(&self, _: &Arc<Reservation>) -> Reserving {
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(())
        })
    }

    fn max_ahead(&self, _: &Reservation) -> usize {
        8
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        Ok(())
    }

    fn end(&self, _: &Arc<Reservation>, _: Ending) {}

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

#[tokio::test]
async fn outage_of_many_rounds_with_store_fails_no_line() {
    let folder = Folder::with(&lines(20));
    let back = Arc::default();
    let server = failing(500, 0, &back).await;
    let clock = ManualClock::new();
    let job = Job { retries: 1, ..folder.job(server.base()) };
    let builder = job.builder().clock(clock.clone()).backend(Arc::new(Roomy));
    let limiter = builder.build().expect("limits");
    let outage = async {
        until("the server is down", || limiter.stats("gpt-4o").outage.is_some()).await;
        until("all have failed", || server.received() == 20).await;
        let mut tests = 0;
        until("it was tested", || {
            clock.advance(Duration::from_secs(1));
            tests = server.received() - 20;
            limiter.stats("gpt-4o").outage.is_none() || tests >= 25
        })
        .await;
        assert!(tests < 40, "one at a time: {tests}");
        back.store(true, Ordering::Relaxed);
        until("the run has ended", || {
            clock.advance(Duration::from_secs(1));
            false
        })
        .await;
    };
    let stop = Stop::new();
    let ended = tokio::select! {
        ended = job.run_with(limiter.clone(), &stop) => ended.expect("the run starts"),
        () = outage => unreachable!("it waits for the run"),
    };
    assert_eq!((ended.report.succeeded, ended.report.failed, ended.halt), (20, 0, None));
}

#[tokio::test]
async fn outage_with_shared_limits_is_tested_by_one_line() {
    let redis = Redis::start();
    let folder = Folder::with(&lines(12));
    let config = format!("cluster: {{redis: '{}', account: a, timeout: 1s}}\n", redis.url());
    std::fs::write(folder.path("paceline.yaml"), config).expect("the file is written");
    let server = Scripted::start(|call| match call.number {
        // All lines are in flight before the first one fails.
        0..12 => Reply::error(500, "down", "down").after(Duration::from_secs(2)),
        12 | 13 => Reply::error(500, "down", "down").after(Duration::from_millis(50)),
        _ => Reply::ok(),
    })
    .await;
    let arguments =
        format!("--config paceline.yaml --base-url {} --rpm 100000 --retries 1", server.base());
    let output = output_of(folder.batch(&arguments)).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(folder.results().values().all(|line| line["error"].is_null()));
    assert_eq!((folder.results().len(), server.received()), (12, 12 + 2 + 12));
    let alone = |number: usize| server.calls()[number].answers_before == number;
    assert!((12..15).all(alone), "{:?}", server.calls());
}

#[tokio::test]
async fn failed_probes_reduce_no_limits() {
    let folder = Folder::with(&lines(20));
    let server = Scripted::start(|call| match call.number {
        // Eight concurrent requests, and two probes.
        0..10 => Reply::error(503, "down", "down"),
        _ => Reply::ok(),
    })
    .await;
    let quota = Quota::new().rpm(100_000);
    let job = Job { max_in_flight: 8, retries: 1, quota, ..folder.job(server.base()) };
    let limiter = job.limiter().expect("limits");
    let ended = job.run_with(limiter.clone(), &Stop::new()).await.expect("the run starts");
    assert_eq!((ended.report.succeeded, server.received()), (20, 30));
    let stats = limiter.stats("gpt-4o");
    let rpm = stats.limits.iter().find(|limit| limit.original == 100_000).expect("the limit");
    assert!(rpm.limit >= 50_000, "halved at most once, by requests sent before the pause: {rpm:?}");
}

#[tokio::test]
async fn failing_line_does_not_extend_outage() {
    let mut all = lines(50);
    all.insert(0, super::rig::line("bad", super::rig::chat("gpt-4o", 100)));
    let folder = Folder::with(&all);
    let back = Arc::default();
    let server = failing(500, 0, &back).await;
    let arguments = format!("--base-url {} --rpm 100000 --retries 1", server.base());
    let mut batch = RunningBatch::start(&folder, &arguments);
    batch.until_printed("paused:").await;
    back.store(true, Ordering::Relaxed);
    let output = batch.ended().await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("resumed:"), "{output:?}");
    let results = folder.results();
    let failed: Vec<_> = results.iter().filter(|(_, line)| !line["error"].is_null()).collect();
    assert_eq!((results.len(), failed.len()), (51, 1), "{failed:?}");
    assert_eq!((failed[0].0.as_str(), &failed[0].1["error"]["code"]), ("bad", &"http_500".into()));
}

#[tokio::test]
async fn failing_lines_use_retries_without_outage() {
    let folder = Folder::with(&lines(40));
    let is_bad = |id: &str| id[1..].parse::<u32>().is_ok_and(|number| number.is_multiple_of(4));
    let server = Scripted::start(move |call| match is_bad(&call.id) {
        true => Reply::error(500, "bad", "bad"),
        false => Reply::ok(),
    })
    .await;
    let job = Job { max_in_flight: 4, retries: 2, ..folder.job(server.base()) };
    let ended = run(&job).await;
    assert_eq!((ended.report.succeeded, ended.report.failed), (30, 10));
    assert_eq!((ended.halt, server.received()), (None, 30 + 10 * 3));
}

#[tokio::test]
async fn long_outage_ends_resumable_run() {
    let folder = Folder::with(&lines(40));
    let back = Arc::default();
    let server = failing(503, 10, &back).await;
    let arguments = format!("--base-url {} --rpm 100000 --give-up-after 100ms", server.base());
    let given_up = output_of(folder.batch(&arguments)).await;
    assert_eq!(given_up.code, Some(2), "{given_up:?}");
    for part in ["gave up: the server has not responded for ", "(HTTP 503 Service Unavailable)"] {
        assert!(given_up.stderr.contains(part), "{part} is missing in {given_up:?}");
    }
    assert!(folder.results().values().all(|line| line["error"].is_null()));
    assert_eq!(folder.results().len(), 10, "results are kept, and no line failed");

    back.store(true, Ordering::Relaxed);
    assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
    assert_eq!(folder.results().len(), 40);
}

#[tokio::test]
async fn response_after_timeout_is_failed_attempt() {
    let folder = Folder::with(&lines(1));
    let server = Scripted::start(|call| match call.number {
        0 => Reply::ok().held(),
        _ => Reply::ok(),
    })
    .await;
    let timeout = Duration::from_millis(100);
    let ended = run(&Job { timeout, retries: 1, ..folder.job(server.base()) }).await;
    assert_eq!((ended.report.succeeded, ended.report.retries, server.received()), (1, 1, 2));
}

#[tokio::test]
async fn interrupt_during_outage_ends_run() {
    let folder = Folder::with(&lines(40));
    let server = failing(500, 0, &Arc::default()).await;
    let mut batch =
        RunningBatch::start(&folder, &format!("--base-url {} --rpm 100000", server.base()));
    batch.until_printed("paused:").await;
    signal(&batch.child, "-INT");
    let output = batch.ended().await;
    assert_eq!(output.code, Some(130), "{output:?}");
    assert_eq!(folder.written(), 0, "no line has failed: the next run sends them all");
}
