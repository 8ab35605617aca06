//! `tollgate count`.

use serde_json::json;
use tollgate_simulate::{Settings, SimulatedServer};

use super::rig::{Home, told, told_of};

const KEY: &str = "sk-test-0123456789abcdef-s3cret";

#[test]
fn the_estimate_is_four_bytes_a_token_and_a_number_alone_on_stdout() {
    let home = Home::new();
    let table = [("", "0\n"), ("a", "1\n"), ("abcd", "1\n"), ("abcde", "2\n"), ("éé\"", "2\n")];
    for (text, tokens) in table {
        let told = told(home.tollgate("count gpt-4o --by estimate").arg(text));
        assert_eq!((told.code, told.stdout.as_str(), told.stderr.as_str()), (Some(0), tokens, ""));
    }
}

#[test]
fn standard_input_is_read_where_no_text_is_given() {
    for argument in ["", "-"] {
        let home = Home::new();
        let mut command = home.tollgate(&format!("count m --by estimate {argument}"));
        assert_eq!(told_of(&mut command, b"12345678\n").stdout, "3\n");
    }
}

#[test]
fn without_a_choice_stderr_says_how_it_was_counted() {
    let told = Home::new().run("count some-model Hello");
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "2\n"));
    assert!(told.stderr.contains("estimated at four bytes per token"), "{told:?}");
    let told = Home::new().run("count some-model Hello --json");
    let expected = json!({"model": "some-model", "tokens": 2, "by": "estimate", "bytes": 5});
    assert_eq!((told.json(), told.stderr.as_str()), (expected, ""));
}

#[cfg(feature = "tokenizer")]
#[test]
fn models_whose_vocabulary_is_built_in_are_counted_exactly() {
    let home = Home::new();
    let told = told(home.tollgate("count gpt-4o --json").arg("速率限制"));
    assert_eq!(
        told.json(),
        json!({"model": "gpt-4o", "tokens": 3, "by": "tokenizer", "bytes": 12})
    );
    let unknown = home.run("count claude-x Hi --by tokenizer");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    assert!(unknown.stderr.contains("use --by estimate or --by provider"), "{unknown:?}");
}

#[cfg(feature = "tokenizer")]
#[test]
fn a_long_text_is_counted_to_its_end() {
    // One token a line where it is counted, which the dense end would not be taken to have.
    let text = format!("{}{}", "hello\n".repeat(30_000), "速率限制\n".repeat(2_000));
    let home = Home::new();
    let told = told_of(&mut home.tollgate("count gpt-4o --by tokenizer"), text.as_bytes());
    // As the vocabulary itself counts it: `bpe_openai::o200k_base().count(&text)`.
    assert_eq!(told.stdout, "68000\n");
}

#[test]
fn what_is_no_text_is_refused_with_the_place() {
    let home = Home::new();
    let told = told_of(&mut home.tollgate("count m -"), b"ab\xff");
    assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""));
    assert_eq!(told.stderr, "tollgate: standard input: invalid UTF-8 at byte 2\n");
    assert_eq!(home.run("count").code, Some(2));
    assert_eq!(super::rig::told(home.tollgate("count").arg(" ")).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_are_asked_in_their_own_way() {
    let server =
        SimulatedServer::bind(Settings::default(), ([127, 0, 0, 1], 0).into()).await.unwrap();
    let (home, base) = (Home::new(), format!("http://{}", server.addr()));
    for (model, variable) in [
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("gpt-4o", "OPENAI_API_KEY"),
    ] {
        let arguments = format!("count {model} --by provider --json --base-url {base}");
        // A model's name says who is asked, but not that its provider's key may go to any server.
        let mut command = home.tollgate(&arguments);
        let told = told(command.env(variable, KEY).arg("Why is the sky blue?"));
        assert_eq!(told.code, Some(0), "{told:?}");
        let counted = told.json();
        assert_eq!((&counted["by"], &counted["model"]), (&json!("provider"), &json!(model)));
        assert!((3..30).contains(&counted["tokens"].as_u64().expect("a number")), "{counted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_is_quoted_without_the_key() {
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
    let home = Home::new();
    let mut command = home.tollgate(&format!(
        "count claude-x Hi --by provider --provider anthropic --base-url {base}"
    ));
    let told = told(command.env("ANTHROPIC_API_KEY", KEY));
    assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""));
    assert!(told.stderr.contains("bad key *** 2023-06-01"), "{told:?}");
}

#[test]
fn without_a_key_or_a_provider_nothing_is_asked() {
    let home = Home::new();
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
        let told = home.run(arguments);
        assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""), "{arguments}");
        assert!(told.stderr.starts_with("tollgate: ") && told.stderr.contains(message), "{told:?}");
    }
}

#[test]
fn help_promises_the_tokenizer_where_it_is_built_in() {
    let home = Home::new();
    let told = home.run("count --help").stdout;
    // The command is tested with all features; one that was built without says how to get it.
    assert!(told.contains("`tokenizer` counts exactly"), "{told}");
    assert!(told.contains("[default: tokenizer if it knows the model, else estimate]"), "{told}");
}
