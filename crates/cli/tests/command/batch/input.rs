use paceline_cli::batch::input::{
    InputLine, InvalidLine, InvalidLineReason, ParsedLine, Reader, count,
};
use paceline_cli::batch::outcome::{Failure, Outcome};

const ENDPOINT: &str = "/v1/chat/completions";

fn read(text: impl AsRef<[u8]>) -> Vec<ParsedLine> {
    let entries = Reader::new(text.as_ref(), ENDPOINT).collect::<Result<_, _>>();
    entries.expect("memory can be read")
}

fn request(text: impl AsRef<[u8]>) -> InputLine {
    match read(text).pop() {
        Some(ParsedLine::Request(line)) => line,
        other => panic!("no request: {other:?}"),
    }
}

fn invalid(text: impl AsRef<[u8]>) -> InvalidLine {
    match read(text).pop() {
        Some(ParsedLine::Invalid(line)) => line,
        other => panic!("no invalid line: {other:?}"),
    }
}

#[test]
fn batch_line_yields_id_path_and_exact_body() {
    let body = r#"{ "model" : "gpt-4o-mini", "temperature":1.0e0, "x":12345678901234567890123, "é":"\u00e9"}"#;
    let line = request(format!(
        r#"{{"custom_id":"a\n1","method":"POST","url":"/v1/embeddings","body":{body}}}"#
    ));
    assert_eq!((line.number, line.custom_id.as_str()), (1, "a\n1"));
    assert_eq!(line.url_path, "/v1/embeddings");
    assert_eq!(line.body, body);
}

#[test]
fn id_or_url_beside_body_makes_batch_line() {
    let only_id = request(r#"{"custom_id":"a","body":{"model":"m"}}"#);
    assert_eq!((only_id.custom_id.as_str(), only_id.url_path.as_str()), ("a", ENDPOINT));
    let only_url = request(r#"{"url":"/v1/responses","body":{"model":"m"}}"#);
    assert_eq!(
        (only_url.custom_id.as_str(), only_url.url_path.as_str()),
        ("line-1", "/v1/responses")
    );
    let nulls = request(r#"{"custom_id":null,"method":null,"url":"/v1/responses","body":{}}"#);
    assert_eq!((nulls.custom_id.as_str(), &nulls.body[..]), ("line-1", &b"{}"[..]));
}

#[test]
fn other_object_is_raw_body_for_endpoint() {
    let text = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"body url custom_id"}]}"#;
    let line = request(format!("\n{text}"));
    assert_eq!((line.custom_id.as_str(), line.url_path.as_str()), ("line-2", ENDPOINT));
    assert_eq!(line.body, text);
    assert_eq!(request(r#"{"body":{"a":1}}"#).body, r#"{"body":{"a":1}}"#);
}

#[test]
fn full_url_is_reduced_to_path_and_query() {
    let path = |url: &str| request(format!(r#"{{"url":"{url}","body":{{}}}}"#)).url_path;
    assert_eq!(path("https://api.openai.com/v1/chat/completions"), "/v1/chat/completions");
    assert_eq!(path("http://me:pw@h:1/openai/x?api-version=2"), "/openai/x?api-version=2");
    assert_eq!(path("/v1/embeddings"), "/v1/embeddings");
}

#[test]
fn blank_lines_bom_and_crlf_keep_editor_line_numbers() {
    let text = "\u{feff}{\"a\":1}\r\n\r\n  \t\n  {\"b\":2}  \n\n{\"c\":3}";
    let found: Vec<_> = read(text)
        .into_iter()
        .map(|entry| match entry {
            ParsedLine::Request(line) => {
                (line.number, String::from_utf8_lossy(&line.body).into_owned())
            }
            ParsedLine::Invalid(line) => panic!("{line}"),
        })
        .collect();
    let expected = [(1, r#"{"a":1}"#), (4, r#"{"b":2}"#), (6, r#"{"c":3}"#)];
    assert_eq!(found, expected.map(|(number, body)| (number, body.to_owned())));
    assert_eq!(count(text.as_bytes()).expect("memory can be read"), 3);
    assert!(read("\u{feff}").is_empty() && read("\n\n").is_empty());
}

#[test]
fn invalid_line_error_has_number_and_reason() {
    let table: [(&[u8], &str); 15] = [
        (b"{\"a\":", "line 1: not a JSON object: EOF while parsing a value at column 5"),
        (b"{\"a\":1} x", "line 1: not a JSON object: trailing characters at column 9"),
        (b"hello", "line 1: not a JSON object; write a Batch line or a request body"),
        (b"[1]", "line 1: not a JSON object; write a Batch line or a request body"),
        (b"\"text\"", "line 1: not a JSON object; write a Batch line or a request body"),
        (b"{\"a\":\"\xff\"}", "line 1: invalid UTF-8 at column 7"),
        (
            b"{\"custom_id\":\"a\",\"url\":\"/v1/x\"}",
            "line 1: a Batch line without `body`; add one",
        ),
        (b"{\"custom_id\":\"a\",\"body\":[]}", "line 1: `body` must be a JSON object"),
        (b"{\"custom_id\":7,\"body\":{}}", "line 1: `custom_id` must be a non-empty string"),
        (b"{\"custom_id\":\"\",\"body\":{}}", "line 1: `custom_id` must be a non-empty string"),
        (
            b"{\"custom_id\":\"a\",\"method\":\"GET\",\"body\":{}}",
            "line 1: `method` must be \"POST\", not \"GET\"",
        ),
        (
            b"{\"url\":\"v1/chat\",\"body\":{}}",
            "line 1: `url` must be an absolute path or an http(s) URL, not \"v1/chat\"",
        ),
        (
            b"{\"url\":\"file:///etc/passwd\",\"body\":{}}",
            "line 1: `url` must be an absolute path or an http(s) URL, not \"file:///etc/passwd\"",
        ),
        (
            b"{\"url\":\"ftp://me:s3cret@h/v1\",\"body\":{}}",
            "line 1: `url` must be an absolute path or an http(s) URL, not \"ftp://h/v1\"",
        ),
        (
            b"{\"custom_id\":\"a\",\"custom_id\":\"b\",\"body\":{}}",
            "line 1: not a JSON object: duplicate field `custom_id` at column 28",
        ),
    ];
    for (line, message) in table {
        assert_eq!(invalid(line).to_string(), message);
        assert_eq!(invalid(line).reason.code(), "invalid_line");
    }
}

fn read_for(endpoint: &str, line: &str) -> Result<InputLine, InvalidLine> {
    match Reader::new(line.as_bytes(), endpoint).next().expect("a line").expect("text") {
        ParsedLine::Request(line) => Ok(line),
        ParsedLine::Invalid(line) => Err(line),
    }
}

const GENERATE: &str = "/v1beta/models/{model}:generateContent";

#[test]
fn provider_batch_line_yields_id_path_and_body() {
    let flash = "/v1beta/models/gemini-2.5-flash:generateContent";
    for (endpoint, line, id, path, body) in [
        (
            "/v1/messages",
            r#"{"custom_id":"a","params":{"model":"claude-x", "max_tokens":9}}"#,
            "a",
            "/v1/messages",
            r#"{"model":"claude-x", "max_tokens":9}"#,
        ),
        (
            GENERATE,
            r#"{"key":"b","request":{"model":"models/gemini-2.5-flash","contents":[]}}"#,
            "b",
            flash,
            r#"{"model":"models/gemini-2.5-flash","contents":[]}"#,
        ),
        (flash, r#"{"key":"c","request":{"contents":[]}}"#, "c", flash, r#"{"contents":[]}"#),
        (
            GENERATE,
            r#"{"model":"a/b c?#\u00e9","contents":[]}"#,
            "line-1",
            "/v1beta/models/a%2Fb%20c%3F%23%C3%A9:generateContent",
            r#"{"model":"a/b c?#\u00e9","contents":[]}"#,
        ),
        (
            "/openai/deployments/{model}/chat/completions?api-version=2024-10-21",
            r#"{"custom_id":"d","body":{"model":"gpt"}}"#,
            "d",
            "/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
            r#"{"model":"gpt"}"#,
        ),
        // Request bodies with the same members as a batch line.
        (ENDPOINT, r#"{"params":{},"key":"x"}"#, "line-1", ENDPOINT, r#"{"params":{},"key":"x"}"#),
        (ENDPOINT, r#"{"custom_id":"e","params":1,"body":{}}"#, "e", ENDPOINT, "{}"),
    ] {
        let read = read_for(endpoint, line).expect(line);
        assert_eq!((read.custom_id.as_str(), read.url_path.as_str()), (id, path), "{line}");
        assert_eq!(read.body, body);
    }
}

#[test]
fn other_provider_line_error_suggests_arguments() {
    for (endpoint, line, message) in [
        (
            ENDPOINT,
            r#"{"custom_id":"a","params":{"model":"claude-x"}}"#,
            "line 1: a batch line of anthropic, but requests go to /v1/chat/completions; use \
             --provider anthropic, or set the path with --endpoint",
        ),
        (
            "/v1/messages",
            r#"{"key":"a","request":{"contents":[]}}"#,
            "line 1: a batch line of gemini, but requests go to /v1/messages; use --provider gemini, \
             or set the path with --endpoint",
        ),
        (
            GENERATE,
            r#"{"key":"a","request":{"contents":[]}}"#,
            "line 1: no `model` in the body, but /v1beta/models/{model}:generateContent needs one; \
             add it, or set a path with the model's name with --endpoint",
        ),
        (
            "/v1/messages",
            r#"{"custom_id":"a","params":[]}"#,
            "line 1: `params` must be a JSON object",
        ),
        (GENERATE, r#"{"key":"a","request":7}"#, "line 1: `request` must be a JSON object"),
        (GENERATE, r#"{"key":7,"request":{}}"#, "line 1: `key` must be a non-empty string"),
    ] {
        let error = read_for(endpoint, line).expect_err(line);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.reason.code(), "invalid_line");
        // The line may be valid with other arguments, so the next run reads it again.
        let depends = message.contains("--endpoint");
        let outcome = Outcome::from(error);
        assert_eq!(outcome.failure().map(Failure::is_retryable), Some(depends), "{line}");
    }
}

#[test]
fn invalid_line_keeps_readable_id_and_reading_continues() {
    let entries = read(concat!(
        r#"{"custom_id":"a","method":"PUT","body":{}}"#,
        "\n{oops\n",
        r#"{"custom_id":"b","body":{}}"#,
    ));
    let ids: Vec<_> = entries
        .iter()
        .map(|entry| match entry {
            ParsedLine::Invalid(line) => (line.number, line.custom_id.as_str(), false),
            ParsedLine::Request(line) => (line.number, line.custom_id.as_str(), true),
        })
        .collect();
    assert_eq!(ids, [(1, "a", false), (2, "line-2", false), (3, "b", true)]);
}

#[test]
fn line_above_maximum_length_is_invalid_and_skipped() {
    let text = format!("{{\"a\":\"{}\"}}\n{{\"b\":1}}\n", "x".repeat(1_000_000));
    let reader = Reader::new(text.as_bytes(), ENDPOINT).with_longest_line(1_000);
    let entries: Vec<_> = reader.map(|entry| entry.expect("memory can be read")).collect();
    let ParsedLine::Invalid(long) = &entries[0] else { panic!("{:?}", entries[0]) };
    assert_eq!(long.to_string(), "line 1: longer than 1000 bytes");
    assert!(matches!(&entries[1], ParsedLine::Request(line) if line.body == r#"{"b":1}"#));
    assert_eq!(entries.len(), 2);
}

#[test]
fn duplicate_model_in_body_is_invalid_at_its_column() {
    for (line, id, column) in [
        (r#"{"model":"a","messages":[],"model":"b"}"#, "line-1", 34),
        (r#"{"custom_id":"x","body":{"model":"a","mod\u0065l":"b"}}"#, "x", 49),
        (r#"{"custom_id":"x","params":{"model":"a","model":"a"}}"#, "x", 46),
        (r#"{"key":"x","request":{"model":"a","model":null}}"#, "x", 41),
    ] {
        let invalid = invalid(line);
        assert_eq!(invalid.custom_id, id, "{line}");
        let error =
            format!("line 1: not a JSON object: duplicate field `model` at column {column}");
        assert_eq!(invalid.to_string(), error, "{line}");
    }
    let nested = r#"{"model":"a","metadata":{"model":"b"},"messages":[{"model":"c"}]}"#;
    assert_eq!(request(nested).body, nested);
}

#[test]
fn duplicate_id_error_names_first_line() {
    let line = |id: &str| format!("{{\"custom_id\":\"{id}\",\"body\":{{}}}}\n");
    let entries = read([line("a"), line("b"), line("a"), line("a")].concat());
    assert!(matches!(&entries[0], ParsedLine::Request(line) if line.custom_id == "a"));
    for (entry, number) in entries[2..].iter().zip(3..) {
        let ParsedLine::Invalid(invalid) = entry else { panic!("{entry:?} is a duplicate") };
        assert_eq!((invalid.number, &invalid.custom_id), (number, &format!("line-{number}")));
        assert_eq!(
            invalid.reason,
            InvalidLineReason::DuplicateId { custom_id: "a".to_owned(), first: 1 }
        );
        assert_eq!(invalid.reason.code(), "duplicate_custom_id");
    }
}

#[test]
fn hundred_thousand_lines_leave_six_megabytes_of_ids() {
    let mut text = String::new();
    for number in 0..100_000 {
        text.push_str(&format!(
            "{{\"custom_id\":\"a-rather-long-name-{number}\",\"body\":{{}}}}\n"
        ));
    }
    let mut reader = Reader::new(text.as_bytes(), ENDPOINT);
    assert_eq!(
        reader.by_ref().filter(|entry| matches!(entry, Ok(ParsedLine::Request(_)))).count(),
        100_000
    );
    assert_eq!(reader.ids().len(), 100_000);
    assert!(reader.ids().memory() < 6_000_000, "{} bytes", reader.ids().memory());
}

#[test]
fn example_lines_are_requests_with_unique_ids() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/requests.jsonl");
    let entries = read(std::fs::read(path).expect("the example exists"));
    assert_eq!(entries.len(), 300);
    for entry in entries {
        let ParsedLine::Request(line) = entry else { panic!("{entry:?}") };
        let body: serde_json::Value = serde_json::from_slice(&line.body).expect("JSON");
        assert!(body["model"].is_string(), "line {}", line.number);
        let length = body["metadata"]["output_tokens"].as_str().map(str::parse::<u64>);
        assert!(line.url_path == "/v1/embeddings" || matches!(length, Some(Ok(1..))), "{body}");
    }
}
