//! `paceline simulate`.

use std::time::Duration;

use clap::Parser;
use paceline_cli::command::{Cli, Command, HeadersForm, RefusalForm, SimulateArgs};
use paceline_simulate::{Cycle, Fault, FaultKind, LimitChange, OtherUse, RetryAfter};
use paceline_testing::http::post_json;
use paceline_testing::process::InteractiveProcess;
use serde_json::{Value, json};

use super::rig::TestHome;

fn parse(arguments: &str) -> Result<SimulateArgs, clap::Error> {
    let words = ["paceline", "simulate"].into_iter().chain(arguments.split_whitespace());
    match Cli::try_parse_from(words)?.command {
        Command::Simulate(args) => Ok(*args),
        other => panic!("{other:?}"),
    }
}

#[test]
fn arguments_of_limits_over_time_are_parsed() {
    let args = parse(
        "--rpm 1200 --burst 200ms --concurrency 8 --others 0.75,20s,40s --change 150s=x0.25 \
         --change 5m=x2 --headers none --refusals unnamed --retry-after 60 \
         --error-latency-ms 500 --storm 100s..2m10s --log replies.jsonl --refuse capacity,0.25 \
         --refuse request,1 --refuse rate,0.1,20s,40s",
    );
    let args = args.expect("valid arguments");
    assert_eq!((args.burst, args.concurrency), (Some(Duration::from_millis(200)), 8));
    let cycle = Cycle { active: Duration::from_secs(20), idle: Duration::from_secs(40) };
    assert_eq!(args.others, Some(OtherUse { share: 0.75, cycle: Some(cycle) }));
    let change = |seconds, factor| LimitChange { at: Duration::from_secs(seconds), factor };
    assert_eq!(args.change, [change(150, 0.25), change(300, 2.0)]);
    assert_eq!((args.headers, args.refusals), (HeadersForm::None, RefusalForm::Unnamed));
    assert_eq!(args.retry_after, RetryAfter::Seconds(60));
    assert_eq!(args.error_latency_ms.min(), Duration::from_millis(500));
    let [storm] = args.storm[..] else { panic!("one storm") };
    assert_eq!((storm.from(), storm.until()), (Duration::from_secs(100), Duration::from_secs(130)));
    let refused = [
        Fault::share(0.25, FaultKind::Overloaded),
        Fault::share(1.0, FaultKind::TooLarge),
        Fault::share(0.1, FaultKind::RateLimited).with_cycle(cycle),
    ];
    assert_eq!(args.refuse, refused);
    let args = parse("--others 0.5 --retry-after ms").expect("valid arguments");
    assert_eq!(args.others, Some(OtherUse { share: 0.5, cycle: None }));
    assert_eq!(args.retry_after, RetryAfter::Milliseconds);
}

#[test]
fn invalid_argument_error_states_the_form() {
    for (arguments, message) in [
        ("--burst 1", "must be a duration with units"),
        ("--burst 61s", "must be at most 1m"),
        ("--burst 0s", "must be longer than 0s"),
        ("--window 0s", "must be longer than 0s"),
        ("--others 1", "must be above 0 and below 1, such as 0.5"),
        ("--others 50%", "must be above 0 and below 1, such as 0.5"),
        ("--others 0.5,20s", "must be SHARE or SHARE,ON,OFF, such as 0.75,20s,40s"),
        ("--others 0.5,0s,1s", "must be longer than 0s"),
        ("--change 150s", "must be TIME=xFACTOR, such as 150s=x0.25"),
        ("--change 150s=0.25", "must be TIME=xFACTOR, such as 150s=x0.25"),
        ("--change 150s=x0", "the factor must be above 0"),
        ("--change 150=x2", "must be a duration with units"),
        ("--retry-after 1.5", "must be auto, none, ms or whole seconds, such as 60"),
        ("--storm 100s", "must be FROM..UNTIL, such as 100s..130s"),
        ("--storm 2m..100s", "must end after its start"),
        ("--refuse rate", "must be KIND,SHARE or KIND,SHARE,ON,OFF, such as rate,0.1"),
        ("--refuse rate,0.1,20s", "must be KIND,SHARE or KIND,SHARE,ON,OFF, such as rate,0.1"),
        ("--refuse rate,0.1,0s,1s", "must be longer than 0s"),
        ("--refuse money,0.1", "the kind must be rate, request, account, window or capacity"),
        ("--refuse rate,0", "the share must be above 0 and at most 1"),
        ("--refuse rate,10%", "the share must be above 0 and at most 1"),
        ("--headers some", "auto, none"),
        ("--charge usd --usd 1.5,1,1", "invalid value '1.5,1,1' for '--usd <AMOUNT>'"),
        ("--error-latency-ms 1s", "write it as MIN..MAX"),
    ] {
        let error = parse(arguments).expect_err(arguments).to_string();
        assert!(error.contains(message), "{arguments}: {error}");
    }
}

#[test]
fn argument_without_effect_is_error() {
    let home = TestHome::new();
    let minute = "there is no limit per minute; add --rpm, --tpm, --itpm or --otpm";
    for (arguments, message) in [
        ("--burst 1s", format!("--burst: {minute}")),
        ("--rpd 5 --window 1s", format!("--window: {minute}")),
        (
            "--rpm 5 --burst 1s --algorithm clock-window",
            "--burst: windows have no burst; use --window".to_owned(),
        ),
        (
            "--rpm 5 --window 1s",
            "--window: a token bucket has no window; add --algorithm sliding-window, fixed-window \
             or clock-window, or use --burst"
                .to_owned(),
        ),
        ("--charge usd", "--charge usd: there is no limit on spending; add --usd".to_owned()),
        (
            "--charge usd --usd 1 --itpm 5",
            "--charge usd: tokens are not charged; remove the token limits".to_owned(),
        ),
        ("--usd 1", "--usd: money is not charged; add --charge usd".to_owned()),
        ("--prices p.json", "--prices: money is not charged; add --charge usd".to_owned()),
        (
            "--concurrency 5 --others 0.5",
            "--others: there is no limit to share; add --rpm, --tpm, --itpm, --otpm or --rpd"
                .to_owned(),
        ),
        (
            "--rpm 0 --change 1s=x2",
            "--change: there is no limit to change; add --rpm, --tpm, --itpm, --otpm, --rpd or \
             --concurrency"
                .to_owned(),
        ),
    ] {
        let output = home.run(&format!("simulate --listen 127.0.0.1:0 {arguments}"));
        assert_eq!(output.code, Some(2), "{arguments}: {output:?}");
        assert_eq!(output.stderr, format!("paceline: {message}\n"), "{arguments}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn provider_has_all_settings_and_writes_log() {
    let home = TestHome::new();
    let mut command = home.paceline(
        "simulate --listen 127.0.0.1:0 --latency-ms 0 --rpm 120 --burst 500ms --headers none \
         --refusals unnamed --retry-after 7 --change 1ms=x0.001 --log replies.jsonl",
    );
    let mut process = InteractiveProcess::start(&mut command);
    let line = process.read_line().expect("the address");
    let url = line.strip_prefix("listening on ").expect("an address");
    let url = format!("{url}/v1/chat/completions");
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
    assert_eq!(post_json(&url, &body).await.status, 200);
    let refused = post_json(&url, &body).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.headers["retry-after"], "7");
    assert!(!refused.headers.contains_key("x-ratelimit-limit-requests"), "{refused:?}");
    let message = refused.json()["error"]["message"].clone();
    assert_eq!(message, "Rate limit reached. Please try again later.");
    process.guard().signal("-TERM");
    let output = tokio::task::spawn_blocking(move || process.output()).await.expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let log = std::fs::read_to_string(home.path("replies.jsonl")).expect("the log");
    let statuses: Vec<Value> = (log.lines())
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["status"].clone())
        .collect();
    assert_eq!(statuses, [200, 429]);
}

#[cfg(unix)]
#[tokio::test]
async fn log_has_the_line_of_each_answered_request() {
    let home = TestHome::new();
    let mut command =
        home.paceline("simulate --listen 127.0.0.1:0 --latency-ms 0 --log replies.jsonl");
    let mut process = InteractiveProcess::start(&mut command);
    let line = process.read_line().expect("the address");
    let url = line.strip_prefix("listening on ").expect("an address");
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
    for answered in 1..=3 {
        post_json(&format!("{url}/v1/chat/completions"), &body).await;
        let log = std::fs::read_to_string(home.path("replies.jsonl")).expect("the log");
        assert_eq!(log.lines().count(), answered, "{log}");
        assert!(log.ends_with("}\n"), "{log}");
    }
}

#[test]
fn unwritable_log_is_error() {
    let home = TestHome::new();
    let output = home.run("simulate --listen 127.0.0.1:0 --log gone/replies.jsonl");
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.starts_with("paceline: gone/replies.jsonl: cannot write: "));
}
