//! Runs against providers that refuse: each kind of refusal stops only what it speaks of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use paceline::provider::{ANTHROPIC, GEMINI, OPENAI, Profile};
use paceline::quota::Quota;
use paceline_cli::batch::Job;
use serde_json::Value;

use super::rig::{Folder, lines, output_of, reason, run};
use super::scripted::{Call, Reply, Scripted};

/// Returns the reported answers of one kind: name and answer.
fn reported(kind: &str) -> Vec<(String, Value)> {
    let rows = include_str!("../../../../provider/tests/data/refusals.jsonl").lines();
    let rows = rows.map(|row| serde_json::from_str::<Value>(row).expect("a row"));
    let named = rows.filter(|row| row["expect"]["kind"] == kind);
    named.map(|row| (row["name"].as_str().expect("a name").to_owned(), row)).collect()
}

fn reply(row: &Value) -> Reply {
    let status = u16::try_from(row["status"].as_u64().expect("a status")).expect("a status");
    let body = match &row["body"] {
        Value::String(text) => text.clone(),
        json => json.to_string(),
    };
    let headers = row["headers"].as_object().into_iter().flatten();
    headers.fold(Reply::ok().status(status).body(body), |reply, (name, value)| {
        let name: &'static str = Box::leak(name.clone().into_boxed_str());
        reply.header(name, value.as_str().expect("a header"))
    })
}

fn named(kind: &str, name: &str) -> Value {
    let rows = reported(kind);
    rows.into_iter().find(|(other, _)| other == name).expect("a row of this name").1
}

fn profile_of(name: &str) -> Profile {
    match name {
        name if name.starts_with("mmx") => Profile::find("https://api.minimax.io/v1"),
        name if name.starts_with("ant") => ANTHROPIC,
        name if name.starts_with("gem") => GEMINI,
        _ => OPENAI,
    }
}

#[tokio::test]
async fn line_that_never_fits_fails_alone_and_pauses_nothing() {
    let folder = Folder::with(&lines(12));
    let refused = named("request", "oai-too-large");
    let server = Scripted::start(move |call| match call.id == "r1" {
        true => reply(&refused),
        false => Reply::ok(),
    })
    .await;
    let job = Job { profile: OPENAI, quota: Quota::new(), retries: 5, ..folder.job(server.base()) };
    let ended = run(&job).await;
    assert_eq!((ended.report.succeeded, ended.report.failed), (11, 1), "{ended:?}");
    assert_eq!((server.received(), ended.report.retries), (12, 0), "{ended:?}");
    assert!(ended.report.learned.is_empty(), "{ended:?}");
    let failed: Vec<_> = folder.lines().into_iter().filter(|l| !l["error"].is_null()).collect();
    let message = failed[0]["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("Request too large for gpt-4o"), "{message}");
}

#[tokio::test]
async fn each_refusal_of_an_account_stops_the_run_at_once() {
    for (name, row) in reported("account") {
        let folder = Folder::with(&lines(40));
        let paid = Arc::new(AtomicBool::new(false));
        let is_paid = Arc::clone(&paid);
        let profile = profile_of(&name);
        let server = Scripted::start(move |_| match is_paid.load(Ordering::Relaxed) {
            true => Reply::ok(),
            false => reply(&row),
        })
        .await;
        let job = Job { profile, max_in_flight: 4, retries: 5, ..folder.job(server.base()) };
        let ended = run(&job).await;
        assert!(reason(&ended).contains("the provider rejects the account"), "{name}: {ended:?}");
        assert!(server.received() <= 4, "{name}: {} were sent", server.received());
        let lines = folder.lines();
        let failed = lines.iter().filter(|line| !line["error"].is_null());
        assert!(failed.clone().all(|line| line["error"]["retryable"] == true), "{name}");
        paid.store(true, Ordering::Relaxed);
        let next = run(&job).await;
        assert_eq!((next.report.succeeded, folder.results().len()), (40, 40), "{name}: {next:?}");
    }
}

#[tokio::test]
async fn account_without_money_ends_the_command_with_2() {
    let folder = Folder::with(&lines(40));
    let row = named("account", "oai-insuff");
    let server = Scripted::start(move |_| reply(&row)).await;
    let arguments = format!("--base-url {} --rpm 1000 --max-in-flight 2", server.base());
    let output = output_of(folder.batch(&arguments)).await;
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("You exceeded your current quota, please check"), "{output:?}");
    assert!(server.received() <= 2, "{}", server.received());
}

/// Azure states a day for a request that is larger than the deployment's limit.
#[tokio::test]
async fn stray_delay_of_a_day_holds_up_no_other_line() {
    let folder = Folder::with(&lines(12));
    let refused = named("rate", "az-86400");
    let server = Scripted::start(move |call| match call.id == "r1" {
        true => reply(&refused),
        false => Reply::ok(),
    })
    .await;
    let profile = Profile::find("https://res.openai.azure.com");
    let job = Job { profile, quota: Quota::new(), retries: 2, ..folder.job(server.base()) };
    let ended = tokio::time::timeout(Duration::from_secs(60), run(&job)).await.expect("an end");
    assert_eq!((ended.report.succeeded, ended.report.failed), (11, 1), "{ended:?}");
    assert!(server.received() <= 14, "{} were sent", server.received());
    assert!(ended.report.learned.is_empty(), "{ended:?}");
}

/// MiniMax refuses in a 200.
#[tokio::test]
async fn line_refused_in_a_success_is_sent_again() {
    let folder = Folder::with(&lines(5));
    let refused = named("rate", "mmx-1002");
    let server = Scripted::start(move |call| match call.number {
        0 => reply(&refused),
        _ => Reply::ok(),
    })
    .await;
    let profile = profile_of("mmx-1002");
    let job = Job { profile, max_in_flight: 1, retries: 2, ..folder.job(server.base()) };
    let ended = run(&job).await;
    assert_eq!((ended.report.succeeded, ended.report.failed), (5, 0), "{ended:?}");
    assert_eq!((server.received(), ended.report.retries), (6, 1), "{ended:?}");
}

/// Gemini states a short delay beside a daily quota; Codex ends its window in a week.
#[tokio::test]
async fn used_up_window_waits_for_its_reset() {
    for (name, provider) in [("gem-perday-short", "gemini"), ("codex-usage", "openai")] {
        let folder = Folder::with(&lines(5));
        let row = named("window", name);
        let server = Scripted::start(move |call| match call.number {
            0 => Reply::ok(),
            _ => reply(&row),
        })
        .await;
        let arguments = format!(
            "--base-url {} --provider {provider} --api-key-env OPENAI_API_KEY --rpm 1000 \
             --max-in-flight 1 --max-wait 1s",
            server.base()
        );
        let output = output_of(folder.batch(&arguments)).await;
        assert_eq!(output.code, Some(2), "{name}: {output:?}");
        let waits =
            "the provider asks to wait (a limit of an hour or longer is used up); resuming in";
        assert_eq!(output.stderr.matches(waits).count(), 1, "{name}: {output:?}");
        assert!(output.stderr.contains("longer than --max-wait (1s)"), "{name}: {output:?}");
        assert_eq!((server.received(), folder.lines().len()), (2, 1), "{name}: {output:?}");
    }
}

/// Returns the lines without an answer after a run against a provider that refuses some requests, and a second run
/// against one that accepts all.
async fn lines_lost_by(
    profile: Profile,
    refuse: impl Fn(&Call) -> Option<Reply> + Send + Sync + 'static,
) -> Vec<String> {
    let folder = Folder::with(&lines(12));
    let fixed = Arc::new(AtomicBool::new(false));
    let is_fixed = Arc::clone(&fixed);
    let server = Scripted::start(move |call| {
        let refused = || refuse(call).filter(|_| !is_fixed.load(Ordering::Relaxed));
        refused().unwrap_or_else(Reply::ok)
    })
    .await;
    let job = Job {
        profile,
        retries: 1,
        max_in_flight: 4,
        max_wait: Some(Duration::from_secs(2)),
        give_up_after: Duration::from_secs(1),
        ..folder.job(server.base())
    };
    let ended = run(&job).await;
    assert!(ended.report.succeeded < 12, "some lines are refused: {ended:?}");
    fixed.store(true, Ordering::Relaxed);
    run(&job).await;
    let results = folder.results();
    let is_lost = |id: &String| results.get(id).is_none_or(|line| !line["error"].is_null());
    (0..12).map(|number| format!("r{number}")).filter(is_lost).collect()
}

#[tokio::test]
async fn next_run_answers_all_lines_after_any_refusal() {
    let kinds = ["rate", "request", "account", "window", "capacity"];
    let mut rows: Vec<_> =
        kinds.iter().flat_map(|kind| reported(kind)).map(|(_, row)| row).collect();
    let others = [
        include_str!("../../../../provider/tests/data/refusals_held_out.jsonl"),
        include_str!("../../../../provider/tests/data/refusals_second_held_out.jsonl"),
    ];
    let others = others.into_iter().flat_map(str::lines);
    let others = others.map(|row| serde_json::from_str::<Value>(row).expect("a row"));
    // Statuses that otherwise concern the request alone.
    rows.extend(others.filter(|row| {
        let kind = row["expect"]["kind"].as_str();
        kind.is_some_and(|kind| kind != "request") && (row["status"] == 400 || row["status"] == 403)
    }));
    // All requests, or those of some lines.
    let runs = rows.into_iter().flat_map(|row| [(row.clone(), 1), (row, 3)]);
    let runs = runs.map(|(row, every)| async move {
        let name = row["name"].as_str().expect("a name").to_owned();
        let profile = match row["url"].as_str() {
            Some(url) => Profile::find(url),
            None => profile_of(&name),
        };
        let is_refused = move |call: &Call| {
            call.id[1..].parse::<usize>().is_ok_and(|number| number.is_multiple_of(every))
        };
        let refuse = move |call: &Call| is_refused(call).then(|| reply(&row));
        let lost = lines_lost_by(profile, refuse).await;
        assert!(lost.is_empty(), "{name}, one line of {every}: {lost:?}");
    });
    futures_util::stream::iter(runs).buffer_unordered(32).collect::<()>().await;
}
