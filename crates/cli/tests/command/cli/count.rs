//! `paceline count`.

use paceline_simulate::{Settings, SimulatedServer};
use serde_json::json;

use super::rig::{TestHome, output_of, run_with_input};

const KEY: &str = "sk-test-0123456789abcdef-s3cret";

#[test]
fn estimate_prints_one_token_per_four_bytes() {
    let home = TestHome::new();
    let table = [("", "0\n"), ("a", "1\n"), ("abcd", "1\n"), ("abcde", "2\n"), ("éé\"", "2\n")];
    for (text, tokens) in table {
        let output = output_of(home.paceline("count gpt-4o --by estimate").arg(text));
        assert_eq!(
            (output.code, output.stdout.as_str(), output.stderr.as_str()),
            (Some(0), tokens, "")
        );
    }
}

#[test]
fn standard_input_is_read_without_text_argument() {
    for argument in ["", "-"] {
        let home = TestHome::new();
        let mut command = home.paceline(&format!("count m --by estimate {argument}"));
        assert_eq!(run_with_input(&mut command, b"12345678\n").stdout, "3\n");
    }
}

#[test]
fn default_counting_method_is_reported_on_stderr() {
    let output = TestHome::new().run("count some-model Hello");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "2\n"));
    assert!(output.stderr.contains("estimated at four bytes per token"), "{output:?}");
    let output = TestHome::new().run("count some-model Hello --json");
    let expected = json!({"model": "some-model", "tokens": 2, "by": "estimate", "bytes": 5});
    assert_eq!((output.json(), output.stderr.as_str()), (expected, ""));
}

#[cfg(feature = "tokenizer")]
#[test]
fn built_in_vocabulary_counts_exactly() {
    let home = TestHome::new();
    let output = output_of(home.paceline("count gpt-4o --json").arg("速率限制"));
    assert_eq!(
        output.json(),
        json!({"model": "gpt-4o", "tokens": 3, "by": "tokenizer", "bytes": 12})
    );
    let unknown = home.run("count claude-x Hi --by tokenizer");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    assert!(unknown.stderr.contains("use --by estimate or --by provider"), "{unknown:?}");
}

#[cfg(feature = "tokenizer")]
#[test]
fn long_text_is_counted_completely() {
    // One token per line if counted; an estimate would differ at the dense end.
    let text = format!("{}{}", "hello\n".repeat(30_000), "速率限制\n".repeat(2_000));
    let home = TestHome::new();
    let output = run_with_input(&mut home.paceline("count gpt-4o --by tokenizer"), text.as_bytes());
    // The exact count: `bpe_openai::o200k_base().count(&text)`.
    assert_eq!(output.stdout, "68000\n");
}

#[test]
fn invalid_utf8_error_has_position() {
    let home = TestHome::new();
    let output = run_with_input(&mut home.paceline("count m -"), b"ab\xff");
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert_eq!(output.stderr, "paceline: standard input: invalid UTF-8 at byte 2\n");
    assert_eq!(home.run("count").code, Some(2));
    assert_eq!(super::rig::output_of(home.paceline("count").arg(" ")).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_provider_counts_tokens() {
    let server =
        SimulatedServer::bind(Settings::default(), ([127, 0, 0, 1], 0).into()).await.unwrap();
    let (home, base) = (TestHome::new(), format!("http://{}", server.addr()));
    for (model, variable) in [
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("gpt-4o", "OPENAI_API_KEY"),
    ] {
        let arguments = format!("count {model} --by provider --json --base-url {base}");
        // The model selects the provider, but its key is sent to another server only if it is named.
        let mut command = home.paceline(&arguments);
        let output = output_of(command.env(variable, KEY).arg("Why is the sky blue?"));
        assert_eq!(output.code, Some(0), "{output:?}");
        let counted = output.json();
        assert_eq!((&counted["by"], &counted["model"]), (&json!("provider"), &json!(model)));
        assert!((3..30).contains(&counted["tokens"].as_u64().expect("a number")), "{counted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_error_is_quoted_without_api_key() {
    use axum::http::{HeaderMap, StatusCode};
    let refuse = |headers: HeaderMap| async move {
        let key = headers["x-api-key"].to_str().expect("a key").to_owned();
        let version = headers["anthropic-version"].to_str().expect("a version").to_owned();
        let error = json!({"error": {"type": "e", "message": format!("bad key {key} {version}")}});
        (StatusCode::UNAUTHORIZED, error.to_string())
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(refuse)).await });
    let home = TestHome::new();
    let mut command = home.paceline(&format!(
        "count claude-x Hi --by provider --provider anthropic --base-url {base}"
    ));
    let output = output_of(command.env("ANTHROPIC_API_KEY", KEY));
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert!(output.stderr.contains("bad key *** 2023-06-01"), "{output:?}");
}

#[test]
fn missing_key_or_provider_sends_no_request() {
    let home = TestHome::new();
    let table = [
        ("count gpt-4o Hi --by provider", "OPENAI_API_KEY: not set"),
        ("count gemini-x Hi --by provider", "GEMINI_API_KEY or GOOGLE_API_KEY: not set"),
        ("count gpt-4o Hi --by provider --api-key-env MY_KEY", "MY_KEY: not set"),
        (
            "count llama-9 Hi --by provider",
            "select its provider with --provider: anthropic, gemini, openai",
        ),
        ("count m Hi --by provider --provider groq", "groq: no endpoint for token counts"),
    ];
    for (arguments, message) in table {
        let output = home.run(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{arguments}");
        assert!(
            output.stderr.starts_with("paceline: ") && output.stderr.contains(message),
            "{output:?}"
        );
    }
}

#[test]
fn help_mentions_tokenizer_if_built_in() {
    let home = TestHome::new();
    let output = home.run("count --help").stdout;
    // The command is tested with all features.
    assert!(output.contains("`tokenizer` counts exactly"), "{output}");
    assert!(
        output.contains("[default: tokenizer if it knows the model, else estimate]"),
        "{output}"
    );
}
