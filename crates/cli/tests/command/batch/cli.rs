use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use paceline::provider::COMPATIBLE;
use paceline::quota::Algorithm;
use paceline_cli::batch::OnChange;
use paceline_cli::command::{
    AlgorithmName, BatchArgs, ChargeRuleName, Cli, Command, Exit, Latency, SimulateArgs,
};

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

fn batch(rest: &str) -> BatchArgs {
    match parse(&format!("paceline batch in.jsonl -o out.jsonl {rest}")) {
        Ok(Cli { command: Command::Batch(args) }) => *args,
        other => panic!("{other:?}"),
    }
}

fn simulate(rest: &str) -> SimulateArgs {
    match parse(&format!("paceline simulate {rest}")) {
        Ok(Cli { command: Command::Simulate(args) }) => *args,
        other => panic!("{other:?}"),
    }
}

fn refused(rest: &str) -> clap::Error {
    parse(&format!("paceline {rest}")).expect_err(rest)
}

#[test]
fn argument_definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn batch_requires_only_input_and_output() {
    let args = batch("");
    assert_eq!((args.input.to_str(), args.output.to_str()), (Some("in.jsonl"), Some("out.jsonl")));
    assert_eq!((args.max_in_flight, args.retries), (512, None));
    assert_eq!((args.credentials.api_key_env, args.provider), (None, None));
    assert!(args.credentials.headers.is_empty());
    assert_eq!(args.endpoint, None);
    let waits = (args.timeout, args.give_up_after, args.max_wait);
    assert_eq!(waits, (Duration::from_secs(600), Duration::from_secs(3_600), None));
    assert_eq!((args.limits.rpm, args.limits.algorithm, args.base_url), (None, None, None));
    assert_eq!((args.changed, args.retry_failed), (OnChange::Refuse, false));
    assert!(!(args.ordered || args.dry_run || args.simulate || args.quiet));
    assert_eq!(refused("batch in.jsonl").kind(), ErrorKind::MissingRequiredArgument);
    assert_eq!(refused("batch -o out.jsonl").kind(), ErrorKind::MissingRequiredArgument);
}

#[test]
fn batch_parses_every_argument() {
    let args = batch(
        "--errors e.jsonl --base-url http://h/v1 --api-key-env MY_KEY --provider compatible --rpm 1 --tpm 0 \
         --rpd 3 --algorithm sliding-window --max-in-flight 1 --retries 0 --ordered \
         --endpoint /v1/embeddings --report r.json --quiet --changed resend --retry-failed",
    );
    assert_eq!((args.limits.rpm, args.limits.tpm, args.limits.rpd), (Some(1), Some(0), Some(3)));
    assert_eq!(args.limits.algorithm, Some(AlgorithmName::SlidingWindow));
    assert_eq!(args.base_url.expect("a base URL").to_string(), "http://h/v1");
    assert_eq!(args.credentials.api_key_env.as_deref(), Some("MY_KEY"));
    assert_eq!(
        (args.provider, args.endpoint.as_deref()),
        (Some(COMPATIBLE), Some("/v1/embeddings"))
    );
    assert_eq!(
        (args.max_in_flight, args.retries, args.ordered, args.quiet),
        (1, Some(0), true, true)
    );
    assert_eq!((args.changed, args.retry_failed), (OnChange::Resend, true));
    let names = [args.errors, args.report].map(|path| path.expect("a path").display().to_string());
    assert_eq!(names, ["e.jsonl", "r.json"]);
}

#[test]
fn simulate_conflicts_with_base_url() {
    assert!(batch("--simulate --simulate-seed 7 --dry-run").simulate);
    let error = refused("batch in -o out --simulate --base-url http://h");
    assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
    assert_eq!(error.exit_code(), i32::from(Exit::Stopped.code()));
}

#[test]
fn invalid_argument_error_suggests_value() {
    let table = [
        ("--max-in-flight 0", "must be at least 1"),
        ("--endpoint v1/chat", "must be an absolute path, such as /v1/chat/completions"),
        ("--base-url api.openai.com", "has no scheme; write it as https://api.openai.com/v1"),
        ("--algorithm leaky", "token-bucket, sliding-window, fixed-window"),
        ("--rpm -1", "unexpected argument"),
        ("--rpm many", "invalid digit"),
        ("--api-key-env sk-proj-123", "not an API key"),
        ("--changed keep", "refuse, resend"),
        ("--timeout 0s", "must be longer than 0s"),
        ("--give-up-after 60", "must be a duration with units"),
        ("--max-wait soon", "must be a duration with units"),
        ("--provider unknown", "known providers: openai, azure"),
        ("--header x-a", "must be NAME=VALUE"),
        ("--header =v", "NAME is not a valid header name"),
        ("--header Host=h", "host is set by the HTTP client and can't be changed; remove it"),
        ("--header x-a=\u{7}", "the value of x-a is not a valid header value"),
    ];
    for (argument, message) in table {
        let error = refused(&format!("batch in -o out {argument}")).to_string();
        assert!(error.contains(message), "{argument}: {error}");
    }
}

#[test]
fn argument_errors_never_quote_secrets() {
    for argument in [
        "--api-key-env sk-s3cret",
        "--base-url https://me:s3cret@host/v1",
        "--header s3cret",
        "--header b\u{e4}d=s3cret",
        "--header host=s3cret",
    ] {
        let error = refused(&format!("batch in -o out {argument}"));
        assert!(!error.to_string().contains("s3cret"), "{error}");
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        assert!(error.to_string().contains(argument.split(' ').next().expect("a flag")), "{error}");
    }
}

#[test]
fn header_values_are_parsed_and_hidden() {
    let args = batch("--header X-Team=a=b --header authorization=s3cret");
    let headers = &args.credentials.headers;
    let read: Vec<_> = headers.iter().map(|h| (h.name.as_str(), h.value.as_bytes())).collect();
    assert_eq!(read, [("x-team", &b"a=b"[..]), ("authorization", &b"s3cret"[..])]);
    assert!(!format!("{args:?}").contains("s3cret"), "{args:?}");
}

#[test]
fn file_used_twice_is_error_except_output_and_errors() {
    let check = |line: &str| match parse(&format!("paceline batch {line}")) {
        Ok(Cli { command: Command::Batch(args) }) => args.check_files(),
        other => panic!("{other:?}"),
    };
    let clash = |line: &str| check(line).expect_err(line).to_string();
    assert_eq!(clash("x -o ./x"), "IN.jsonl and --output are the same file, ./x; use two files");
    assert_eq!(
        clash("x -o y --report y"),
        "--output and --report are the same file, y; use two files"
    );
    assert_eq!(
        clash("x -o y --errors x"),
        "IN.jsonl and --errors are the same file, x; use two files"
    );
    assert_eq!(check("x -o y --errors y --report z"), Ok(()));
}

#[test]
fn simulate_parses_defaults_and_arguments() {
    let args = simulate("");
    assert_eq!(args.listen.to_string(), "127.0.0.1:8089");
    assert_eq!((args.charge, args.burst, args.seed), (ChargeRuleName::Openai, None, 1));
    let args = simulate(
        "--listen 127.0.0.1:0 --rpm 500 --tpm 30000 --rpd 10000 --algorithm fixed-window \
         --charge usage --latency-ms 5..7 --seed 3",
    );
    assert_eq!((args.listen.port(), args.limits.rpd), (0, Some(10_000)));
    assert_eq!((args.charge, args.seed), (ChargeRuleName::Usage, 3));
    let latency = (args.latency_ms.min(), args.latency_ms.max());
    assert_eq!(latency, (Duration::from_millis(5), Duration::from_millis(7)));
}

#[test]
fn latency_is_number_or_range_of_milliseconds() {
    let latency = "200".parse::<Latency>().expect("one number");
    assert_eq!(latency.min(), latency.max());
    for text in ["", "..", "8..5", "5..", "5ms", "-1..2", "1...2"] {
        let error = text.parse::<Latency>().expect_err(text).to_string();
        assert!(error.contains("write it as MIN..MAX, such as 50..800"), "{error}");
    }
}

#[test]
fn algorithm_names_map_to_engine_algorithms() {
    assert_eq!(Algorithm::from(AlgorithmName::TokenBucket), Algorithm::TokenBucket);
    assert_eq!(Algorithm::from(AlgorithmName::SlidingWindow), Algorithm::SlidingWindow);
    assert_eq!(Algorithm::from(AlgorithmName::FixedWindow), Algorithm::FixedWindow);
    assert_eq!(Algorithm::from(AlgorithmName::ClockWindow), Algorithm::ClockWindow);
}

#[test]
fn batch_help_has_exit_codes_examples_and_zero_limit() {
    let help = refused("batch --help").to_string();
    for part in ["Exit codes:", "130  interrupted", "Examples:", "0 = no limit", "--simulate\n"] {
        assert!(help.contains(part), "{part} is missing from\n{help}");
    }
    assert!(!help.contains("simulate-seed"), "{help}");
    let codes = [Exit::Success, Exit::SomeFailed, Exit::Stopped, Exit::Interrupted];
    assert_eq!(codes.map(Exit::code), [0, 1, 2, 130]);
}
