//! Rejected and failed requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderMap;
use paceline::provider::{COMPATIBLE_USAGE, OPENAI};
use paceline::quota::Quota;
use paceline_cli::batch::Job;
use paceline_config::Config;
use paceline_simulate::{Fault, FaultKind, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::rig::{Folder, KEY, chat, line, lines, output_of, reason, run, simulated};
use super::scripted::{Reply, Scripted};

#[tokio::test]
async fn rejected_api_key_stops_run_and_is_hidden() {
    let folder = Folder::with(&lines(40));
    let fixed = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&fixed);
    let server = Scripted::start(move |call| match call.number {
        3.. if !open.load(Ordering::Relaxed) => {
            let output = format!("Incorrect API key provided: {}.", call.authorization);
            Reply::error(401, "invalid_api_key", &output)
        }
        _ => Reply::ok(),
    })
    .await;
    let arguments = format!(
        "--base-url {} --api-key-env OPENAI_API_KEY --rpm 1000 --max-in-flight 2 --report r.json",
        server.base()
    );
    let stopped = output_of(folder.batch(&arguments)).await;
    assert_eq!(stopped.code, Some(2), "{stopped:?}");
    assert!(stopped.stderr.contains("the provider rejects the account (HTTP 401)"), "{stopped:?}");
    assert!(stopped.stderr.contains("Incorrect API key provided: Bearer ***."), "{stopped:?}");
    assert!(stopped.stdout.contains("succeeded"), "the report is printed: {stopped:?}");
    assert!(server.received() <= 3 + 2, "{} were sent", server.received());
    assert!(server.calls().iter().all(|call| call.authorization == format!("Bearer {KEY}")));
    for text in [&stopped.stderr, &stopped.stdout, &folder.everything_written()] {
        assert!(!text.contains("s3cret"), "{text}");
    }
    for failed in folder.lines().iter().filter(|line| !line["error"].is_null()) {
        assert_eq!(
            (&failed["error"]["code"], &failed["error"]["retryable"]),
            (&"http_401".into(), &true.into())
        );
    }

    fixed.store(true, Ordering::Relaxed);
    let next = output_of(folder.batch(&arguments)).await;
    assert_eq!(next.code, Some(0), "{next:?}");
    let results = folder.results();
    assert_eq!(results.len(), 40);
    assert!(results.values().all(|line| line["error"].is_null()));
}

#[tokio::test]
async fn exhausted_account_stops_run_for_any_status() {
    let spent = [
        Reply::error(429, "insufficient_quota", "You exceeded your current quota"),
        Reply::error(400, "billing_hard_limit_reached", "Billing hard limit has been reached"),
        Reply::error(403, "account_deactivated", "The account is deactivated"),
        Reply::ok().body(r#"{"error":{"code":"insufficient_quota","message":"no credit"}}"#),
    ];
    for reply in spent {
        let folder = Folder::with(&lines(10));
        let reply = std::sync::Mutex::new(Some(reply));
        let server = Scripted::start(move |_| {
            let mut reply = reply.lock().expect("no panic");
            reply.take().unwrap_or_else(Reply::ok)
        })
        .await;
        let job = Job { max_in_flight: 1, retries: 5, ..folder.job(server.base()) };
        let ended = run(&job).await;
        assert!(reason(&ended).contains("rejects the account"), "{ended:?}");
        assert_eq!((server.received(), ended.report.retries), (1, 0), "{ended:?}");
        assert_eq!(folder.lines()[0]["error"]["retryable"], true);
        let next = run(&job).await;
        assert_eq!((next.report.succeeded, folder.results().len()), (10, 10));
    }
}

#[tokio::test]
async fn rejected_request_fails_permanently_without_retry() {
    let folder = Folder::with(&lines(5));
    let server = Scripted::start(|call| match call.id.as_str() {
        "r1" => Reply::error(400, "invalid_value", "max_tokens is too large"),
        "r2" => Reply::error(403, "unsupported_region", "not here"),
        "r3" => Reply::error(404, "model_not_found", "no such model"),
        _ => Reply::ok(),
    })
    .await;
    let job = Job { retries: 5, profile: COMPATIBLE_USAGE, ..folder.job(server.base()) };
    let ended = run(&job).await;
    assert_eq!((ended.report.succeeded, ended.report.failed, ended.report.retries), (2, 3, 0));
    let results = folder.results();
    let codes = ["r1", "r2", "r3"].map(|id| results[id]["error"]["code"].clone());
    assert_eq!(codes, ["http_400", "http_403", "http_404"]);
    assert_eq!(results["r1"]["error"]["message"], "max_tokens is too large");
    assert_eq!(results["r1"]["response"]["body"]["error"]["code"], "invalid_value");
    assert_eq!(ended.report.charged_tokens, 2 * 12, "refused requests are not charged");

    let next = run(&job).await;
    assert_eq!((next.report.skipped, next.report.requests, next.report.failed_earlier), (5, 0, 3));
    assert_eq!(server.received(), 5);
}

#[tokio::test]
async fn server_errors_are_retried() {
    let faults = [(FaultKind::ServerError, 4), (FaultKind::Overloaded, 9)];
    for (kind, every) in faults {
        let folder = Folder::with(&lines(12));
        let settings = Settings::default().with_fault(Fault::every(every, kind));
        let (server, base) = simulated(settings).await;
        let job = Job { retries: 8, profile: COMPATIBLE_USAGE, ..folder.job(&base) };
        let ended = run(&job).await;
        let stats = server.shutdown().await.expect("the server shuts down").total;
        assert!(stats.failed > 0 && stats.failed == ended.report.retries, "{kind:?} {stats:?}");
        assert_eq!((ended.report.succeeded, folder.results().len()), (12, 12), "{kind:?}");
        assert_eq!(ended.report.charged_tokens, 12 * 17, "only answered requests are charged");
    }
}

#[tokio::test]
async fn exhausted_retries_write_error_line_replaced_by_next_run() {
    let folder = Folder::with(&lines(3));
    let fault = Fault::every(1, FaultKind::ServerError);
    let (server, base) = simulated(Settings::default().with_fault(fault)).await;
    let ended = run(&Job { retries: 1, ..folder.job(&base) }).await;
    assert_eq!((ended.report.failed, ended.report.retries), (3, 3));
    assert_eq!(server.stats().total.received, 6);
    for line in folder.results().values() {
        let error = &line["error"];
        assert_eq!((&error["code"], &error["retryable"]), (&"http_500".into(), &true.into()));
        assert_eq!(line["response"]["status_code"], 500);
    }
    let (_server, base) = simulated(Settings::default()).await;
    let next = run(&folder.job(&base)).await;
    assert_eq!((next.report.succeeded, next.report.skipped, folder.results().len()), (3, 0, 3));
}

#[tokio::test]
async fn retry_after_delays_only_requests_of_same_model() {
    let all: Vec<_> = ["a", "a", "a", "b", "b", "a"].into_iter().enumerate().collect();
    let all: Vec<_> =
        all.iter().map(|(n, model)| line(&format!("r{n}"), chat(model, 100))).collect();
    let folder = Folder::with(&all);
    let server = Scripted::start(|call| match call.number {
        0 => Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after", "1"),
        _ => Reply::ok(),
    })
    .await;
    let job = Job { max_in_flight: 1, retries: 3, ..folder.job(server.base()) };
    let ended = run(&job).await;
    assert_eq!(
        (ended.report.succeeded, ended.report.retries, ended.report.rate_limited),
        (6, 1, 1)
    );
    let calls = server.calls();
    let mut order: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
    // r0 may queue again before or after the other lines are read.
    order[3..].sort_unstable();
    assert_eq!(
        order,
        ["r0", "r3", "r4", "r0", "r1", "r2", "r5"],
        "requests for `a` wait, requests for `b` do not"
    );
    let refused_at = calls[1].answered_before;
    for call in calls.iter().skip(1).filter(|call| call.model == "a") {
        assert!(
            call.arrived >= refused_at + Duration::from_secs(1),
            "{} was sent too early",
            call.id
        );
    }
}

#[tokio::test]
async fn in_band_error_is_classified_by_provider() {
    let folder = Folder::with(&lines(3));
    let event =
        |code: &str| format!("data: {{\"error\":{{\"code\":\"{code}\",\"message\":\"oh\"}}}}\n\n");
    let server = Scripted::start(move |call| match (call.id.as_str(), call.number) {
        ("r1", _) => {
            Reply::ok().header("content-type", "text/event-stream").body(event("invalid_prompt"))
        }
        ("r2", 2) => {
            Reply::ok().header("content-type", "text/event-stream").body(event("server_error"))
        }
        _ => Reply::ok(),
    })
    .await;
    let ended = run(&Job { max_in_flight: 1, retries: 2, ..folder.job(server.base()) }).await;
    assert_eq!((ended.report.succeeded, ended.report.failed, ended.report.retries), (2, 1, 1));
    let error = &folder.results()["r1"]["error"];
    assert_eq!((&error["code"], &error["message"]), (&"in_band_error".into(), &"oh".into()));
    assert_eq!(error["retryable"], false);
}

#[tokio::test]
async fn redirect_is_retryable_failure() {
    let folder = Folder::with(&lines(2));
    let server = Scripted::start(|call| match call.path.as_str() {
        "/elsewhere" => Reply::ok().body("<html>Log in</html>"),
        _ => Reply::ok().body("").header("location", "/elsewhere?key=s3cret").status(302),
    })
    .await;
    run(&folder.job(server.base())).await;
    assert_eq!(server.received(), 2);
    for line in folder.results().values() {
        let error = &line["error"];
        assert_eq!((&error["code"], &error["retryable"]), (&"http_302".into(), &true.into()));
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains("redirected to /elsewhere;"))
        );
        assert!(!line.to_string().contains("s3cret"));
    }
}

#[tokio::test]
async fn connection_error_is_retried_without_charge() {
    let mut lines = lines(1);
    lines[0] = lines[0].replace("completions", "completions?key=s3cret");
    let folder = Folder::with(&lines);
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", closed.local_addr().expect("an address"));
    drop(closed);
    let ended = run(&Job { retries: 1, ..folder.job(&base) }).await;
    let report = &ended.report;
    assert_eq!((report.failed, report.retries, report.charged_tokens), (1, 1, 0));
    assert_eq!((ended.halt, report.estimate_error, report.wait_p99_s), (None, None, 0.0));
    let error = &folder.results()["r0"]["error"];
    assert_eq!((&error["code"], &error["retryable"]), (&"connection".into(), &true.into()));
    assert!(!folder.everything_written().contains("s3cret"));
}

#[tokio::test]
async fn truncated_response_is_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\n{\"a\":1}";
        for answer in [&whole[..whole.len() - 1], whole] {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut buf = [0; 4096];
            let _ = stream.read(&mut buf).await.expect("a request");
            stream.write_all(answer.as_bytes()).await.expect("a response");
        }
    });
    let folder = Folder::with(&lines(1));
    let ended = run(&Job { retries: 1, ..folder.job(&base) }).await;
    assert_eq!((ended.report.succeeded, ended.report.retries), (1, 1));
    assert_eq!(folder.results()["r0"]["response"]["body"], serde_json::json!({"a": 1}));
}

/// Content types and invalid bodies of 200 responses, and the start of their error messages.
const INVALID_RESPONSES: &[(&str, &str, &str)] = &[
    ("", "", "HTTP 200, but the body is empty"),
    (
        "text/html",
        "<!DOCTYPE html><p>Sign in</p>",
        "HTTP 200, but the body is HTML or XML, not JSON",
    ),
    (
        "",
        r#"{"id":"x","choices":[{"mess"#,
        "HTTP 200, but the body is not valid JSON: EOF while parsing",
    ),
    ("", "null", "HTTP 200, but the body is `null`"),
    ("", "{}", "HTTP 200, but the body is `{}`"),
    ("", r#"{"error":{"message":"the model crashed"}}"#, "the model crashed"),
    ("", r#"{"error":"the model crashed"}"#, "the model crashed"),
    (
        "text/event-stream",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n",
        "HTTP 200, but the stream ends before its last event",
    ),
];

/// The limit of a day admits one line. The run would end after hours if the lines kept their tokens.
#[tokio::test]
async fn refused_lines_cost_no_tokens() {
    for status in [400, 413, 422] {
        let folder = Folder::with(&lines(3));
        let server = Scripted::start(move |_| Reply::error(status, "x", "No")).await;
        let quota = Quota::new().tpd(150);
        let ended = run(&Job { profile: OPENAI, quota, ..folder.job(server.base()) }).await;
        assert_eq!((ended.report.failed, server.received()), (3, 3), "{status}");
    }
}

/// After a 500, the request may have been processed.
#[tokio::test]
async fn money_of_a_503_without_delay_is_returned() {
    let folder = Folder::with(&[line("a", chat("gpt-4o", 1_000))]);
    let server = Scripted::start(|call| match call.number {
        0 => Reply::error(503, "", "No"),
        _ => Reply::ok(),
    })
    .await;
    // A request costs $0.01 at most.
    let config = Config::parse("quotas: {gpt-4o: {usd_per_day: 0.015}}").expect("a configuration");
    let max_wait = Some(Duration::ZERO);
    let job = Job {
        profile: OPENAI,
        config: Some(config),
        retries: 1,
        max_wait,
        ..folder.job(server.base())
    };
    let ended = run(&job).await;
    assert_eq!((ended.report.succeeded, server.received()), (1, 2), "{}", ended.report);
}

#[tokio::test]
async fn invalid_200_response_is_retried() {
    let folder = Folder::with(&lines(INVALID_RESPONSES.len()));
    let server = Scripted::start(|call| match call.answers_before {
        before if before < INVALID_RESPONSES.len() => invalid_response(&call.id),
        _ => Reply::ok(),
    })
    .await;
    let job = Job { retries: 2, profile: COMPATIBLE_USAGE, ..folder.job(server.base()) };
    let ended = run(&Job { max_in_flight: INVALID_RESPONSES.len(), ..job }).await;
    let count = INVALID_RESPONSES.len() as u64;
    let report = &ended.report;
    assert_eq!((report.succeeded, report.failed, report.retries), (count, 0, count), "{report}");
    assert_eq!(server.received(), 2 * INVALID_RESPONSES.len());
}

#[tokio::test]
async fn invalid_200_response_after_retries_is_error_line() {
    let folder = Folder::with(&lines(INVALID_RESPONSES.len()));
    let server = Scripted::start(|call| invalid_response(&call.id)).await;
    for retries in [0, 1] {
        let job = Job { retries, profile: OPENAI, ..folder.job(server.base()) };
        let ended = run(&job).await;
        let report = &ended.report;
        assert_eq!((report.succeeded, ended.halt), (0, None), "{report}");
        assert_eq!(report.failed, INVALID_RESPONSES.len() as u64);
        // A 200 may have been billed: each attempt keeps its reservation of 100 tokens.
        assert_eq!(report.charged_tokens, report.failed * 100 * u64::from(retries + 1));
        for (id, line) in folder.results() {
            let (_, body, expected) = INVALID_RESPONSES[id[1..].parse::<usize>().expect("an id")];
            let message = line["error"]["message"].as_str().expect("a message");
            assert!(message.starts_with(expected), "{id}: {message}");
            let code =
                if expected.starts_with("HTTP") { "invalid_response" } else { "in_band_error" };
            assert_eq!(line["error"]["code"], code, "{id}: {line}");
            assert_eq!(line["error"]["retryable"], true, "the next run sends it again: {line}");
            assert!(line["response"]["status_code"] == 200, "{body}: {line}");
        }
    }
}

fn invalid_response(id: &str) -> Reply {
    let (kind, body, _) = INVALID_RESPONSES[id[1..].parse::<usize>().expect("an id")];
    let reply = Reply::ok().body(body);
    if kind.is_empty() { reply } else { reply.header("content-type", kind) }
}

#[test]
fn job_debug_omits_api_key() {
    let folder = Folder::with(&[]);
    let (name, value) = OPENAI.api().credential(KEY).expect("a key");
    let headers = HeaderMap::from_iter([(name, value)]);
    let job = Job { headers, ..folder.job("http://127.0.0.1:1") };
    assert!(!format!("{job:?}").contains("s3cret"));
    let error = OPENAI.api().credential("s3cret\n\u{7}x").expect_err("no key");
    assert!(!error.to_string().contains("s3cret"));
}
