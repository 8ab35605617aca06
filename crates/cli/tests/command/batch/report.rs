use paceline_cli::batch::report::{FailureCount, FailureExample, LearnedReport, Report};

fn report() -> Report {
    Report {
        requests: 1_234_567,
        succeeded: 1_234_565,
        failed: 2,
        elapsed_s: 61.234,
        ideal_s: 58.5,
        input_tokens: 9_999,
        wait_p50_s: 0.05,
        wait_p99_s: 0.1,
        ..Report::default()
    }
    .with_last_send(60.0)
    .with_charge(1_100, 1_000)
}

#[test]
fn report_is_table_with_aligned_numbers() {
    let text = report().to_string();
    let expected = "\
requests        1,234,567
succeeded       1,234,565
failed                  2
skipped                 0    finished by an earlier run
retries                 0
rate limited            0    429 responses
elapsed             61.23 s
ideal               58.50 s  at the limits, with zero latency
utilization          97.5 %  ideal / time to the last send
input tokens        9,999
output tokens           0
charged tokens      1,000    against the token limit
cost                    -    of the reported usage, at list prices
estimate error       10.0 %  reserved minus charged
wait p50             0.05 s  queued for the limits
wait p99             0.10 s";
    assert_eq!(text, expected);
}

#[test]
fn report_json_has_every_field_and_round_trips() {
    let json = report().to_json();
    let value: serde_json::Value = serde_json::from_str(&json).expect("the report is JSON");
    let keys = "requests succeeded failed skipped retries rate_limited elapsed_s ideal_s utilization \
        input_tokens output_tokens charged_tokens cost_usd estimate_error wait_p50_s wait_p99_s failed_earlier failures learned";
    for key in keys.split_whitespace() {
        assert!(value.get(key).is_some(), "{key} is missing");
    }
    let back: Report = serde_json::from_str(&json).expect("the report round-trips");
    assert_eq!(back.to_string(), report().to_string());
}

#[test]
fn report_with_failures_ends_with_causes() {
    let failure = |code: &str, count, message: &str| FailureCount {
        code: code.to_owned(),
        kind: None,
        reason: None,
        count,
        example: FailureExample { custom_id: "r1".to_owned(), message: message.to_owned() },
    };
    let refused =
        FailureCount { reason: Some("it is refused".to_owned()), ..failure("http_402", 2, "pay") };
    let failures =
        vec![failure("http_400", 1_234, "no\u{1b}[2J"), refused, failure("timeout", 1, "late")];
    let text = Report { skipped: 5, failed_earlier: 2, failures, ..Report::default() }.to_string();
    let end = "\
wait p99        0.00 s

failures by cause
  http_400  1,234  \"r1\": no\\u{1b}[2J
  http_402      2  it is refused; \"r1\": pay
  timeout       1  \"r1\": late";
    assert!(text.ends_with(end), "{text}");
    let skipped =
        "skipped            5    2 failed in an earlier run; send them again with --retry-failed\n";
    assert!(text.contains(skipped), "{text}");
}

#[test]
fn report_with_learned_limits_states_option() {
    let learned = LearnedReport {
        key: "gpt-4o".to_owned(),
        dimension: "requests".to_owned(),
        amount: 20.0,
        configured: Some(40.0),
        text: "learned 20 requests/s (told 40), measured 3 times, last 12s ago".to_owned(),
        advice: Some("set --rpm 1200 to start the next run at this rate".to_owned()),
    };
    let in_flight = LearnedReport {
        key: "m\u{1b}".to_owned(),
        text: "learned 8 requests in flight, a first estimate, 0s ago".to_owned(),
        advice: None,
        ..learned.clone()
    };
    let text = Report { learned: vec![learned, in_flight], ..Report::default() }.to_string();
    let end = "\
learned limits
  gpt-4o: learned 20 requests/s (told 40), measured 3 times, last 12s ago
    set --rpm 1200 to start the next run at this rate
  m\\u{1b}: learned 8 requests in flight, a first estimate, 0s ago";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn report_of_earlier_version_is_readable() {
    let json = report().to_json();
    let mut value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let fields = value.as_object_mut().expect("an object");
    for field in ["failures", "failed_earlier", "learned"] {
        fields.remove(field).expect("the field exists");
    }
    assert_eq!(serde_json::from_value::<Report>(value).ok(), Some(report()));
}

#[test]
fn run_without_limits_and_charges_has_no_ratios() {
    let report = Report::default().with_last_send(0.0).with_charge(7, 0);
    assert_eq!((report.utilization, report.estimate_error), (None, None));
    assert!(report.to_json().contains("\"utilization\": null"));
    assert!(report.to_string().contains("utilization        -    ideal"), "{report}");
}

#[test]
fn run_faster_than_limits_has_no_utilization() {
    // The usage of the day was reset during the run.
    let report = |ideal_s| Report { ideal_s, ..Report::default() }.with_last_send(6.0);
    assert_eq!(report(172_801.0).utilization, None);
    assert_eq!(report(6.0).utilization, Some(1.0));
}
