//! Runs without limits, which follow the limits in responses.

use std::time::Duration;

use paceline::quota::Quota;
use paceline_cli::batch::{Halt, Job, Stop};
use paceline_simulate::Settings;

use super::rig::{Folder, lines, output_of, run, simulated, until};
use super::scripted::{Reply, Scripted};

#[tokio::test]
async fn first_response_sets_limits_of_following_requests() {
    let folder = Folder::with(&lines(50));
    let (server, base) = simulated(Settings::default().with_rpm(30)).await;
    let stop = Stop::new();
    let job = Job { quota: Quota::new(), ..folder.job(&base) };
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { job.run(&stop).await }
    });
    until("the learned limit is used up", || folder.written() >= 30).await;
    // The next request would be sent a minute later.
    stop.halt(Halt::Interrupted);
    let ended = running.await.expect("no panic").expect("the run starts");
    assert_eq!((ended.report.succeeded, ended.report.rate_limited), (30, 0), "{}", ended.report);
    let stats = server.shutdown().await.expect("the server shuts down");
    assert_eq!((stats.total.received, stats.total.refused), (30, 0));
}

#[tokio::test]
async fn responses_without_limits_leave_run_unlimited() {
    let folder = Folder::with(&lines(20));
    let server = Scripted::start(|call| match call.number {
        0 => Reply::ok().after(Duration::from_millis(100)),
        // Longer than the interval between requests of a slow start.
        _ => Reply::ok().after(Duration::from_millis(500)),
    })
    .await;
    let ended = run(&Job { quota: Quota::new(), ..folder.job(server.base()) }).await;
    assert_eq!(ended.report.succeeded, 20);
    let calls = server.calls();
    assert_eq!(calls[1].answers_before, 1, "the second request waits for the first response");
    assert!(calls[19].answers_before < 19, "later requests are concurrent");
}

#[tokio::test]
async fn response_without_limits_keeps_one_in_flight() {
    let folder = Folder::with(&lines(4));
    let server = Scripted::start(|call| match call.number {
        0..3 => Reply::error(400, "x", "no").after(Duration::from_millis(20)),
        _ => Reply::ok(),
    })
    .await;
    run(&Job { quota: Quota::new(), ..folder.job(server.base()) }).await;
    let before: Vec<_> = server.calls().iter().map(|call| call.answers_before).collect();
    assert_eq!(before, [0, 1, 2, 3]);
}

#[tokio::test]
async fn run_without_limits_warns_and_zero_is_unlimited() {
    let folder = Folder::with(&lines(12));
    // Responses are held until all requests have arrived, which requires that they are unlimited.
    let server = Scripted::start(|call| match call.number {
        0 => Reply::ok().header("x-ratelimit-limit-requests", "1"),
        _ => Reply::ok().held(),
    })
    .await;
    let child = folder.batch(&format!("--base-url {} --rpm 0", server.base())).spawn();
    let child = child.expect("the command starts");
    until("all requests have arrived", || server.received() == 12).await;
    server.release();
    let first = super::rig::ended(child).await;
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""), "{first:?}");

    let again = format!("--base-url {}", server.base());
    let second = output_of(folder.batch(&again)).await;
    assert!(second.stderr.contains("one request at a time"), "{second:?}");
    assert!(second.stderr.contains("set limits with --rpm and --tpm"), "{second:?}");
    let quiet = output_of(folder.batch(&format!("{again} --quiet"))).await;
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""), "{quiet:?}");
}
