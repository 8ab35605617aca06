//! Formats of all providers, scanned whole and in chunks.

use paceline_limiter::quota::Usage;
use paceline_provider::{BEDROCK, OPENAI, Profile, Scanned, Scanner};

use super::scanner_fixtures::{Fixture, fixtures};
use paceline_testing::event_stream::{event, message, with_head};

#[test]
fn each_format_has_the_expected_usage() {
    for fixture in fixtures() {
        let scanned = scan_in_chunks(&fixture, || usize::MAX);
        assert_eq!(scanned.usage, fixture.expected(), "{}", fixture.name);
        let error = scanned.error.as_ref();
        let read = error.map(|e| (e.code().or(e.kind()).unwrap_or(""), e.message()));
        assert_eq!(read, fixture.error, "{}", fixture.name);
    }
}

#[test]
fn each_format_is_detected_without_content_type() {
    for fixture in fixtures() {
        let expected = scan_in_chunks(&fixture, || usize::MAX);
        for content_type in ["", "application/json", "application/octet-stream"] {
            let fixture = Fixture { content_type, body: fixture.body.clone(), ..fixture };
            assert_eq!(scan_in_chunks(&fixture, || usize::MAX), expected, "{}", fixture.name);
        }
    }
}

#[test]
fn each_format_is_independent_of_chunk_boundaries() {
    for fixture in fixtures() {
        let expected = scan_in_chunks(&fixture, || usize::MAX);
        assert_eq!(scan_in_chunks(&fixture, || 1), expected, "{}", fixture.name);
        for at in 1..fixture.body.len() {
            let mut pieces = [at, usize::MAX].into_iter();
            let cut = scan_in_chunks(&fixture, || pieces.next().unwrap());
            assert_eq!(cut, expected, "{} cut at {at}", fixture.name);
        }
    }
}

#[test]
fn last_usage_in_an_array_is_read() {
    let body = r#"[{"usage":{"prompt_tokens":1,"completion_tokens":1}},
                   {"usage":{"prompt_tokens":1,"completion_tokens":7}}, {"choices":[]}]"#;
    assert_eq!(scan_whole(body.as_bytes()).usage, usage(1, 7));
}

#[test]
fn usage_in_first_choice_of_a_chunk_is_read() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"{\\\"usage\\\":{}}\"},\"finish_reason\":null}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\",\"usage\":{\"prompt_tokens\":8,\
        \"completion_tokens\":11,\"total_tokens\":19}},{\"usage\":{\"prompt_tokens\":99}}]}\n\ndata: [DONE]\n\n";
    let scanned = scan_whole(body.as_bytes());
    assert_eq!((scanned.usage, scanned.is_final), (usage(8, 11), true));
}

#[test]
fn usage_in_first_choice_of_a_whole_answer_is_read() {
    let body = r#"{"choices":[{"index":0,"message":{"content":"{\"usage\":{}}"},"finish_reason":"stop",
        "usage":{"prompt_tokens":8,"completion_tokens":11}},{"usage":{"prompt_tokens":99}}]}"#;
    assert_eq!(scan_whole(body.as_bytes()).usage, usage(8, 11));
}

#[test]
fn error_of_minimax_in_a_success_is_read() {
    let error = |status: &str| {
        let body = format!(
            r#"{{"id":"","choices":null,"base_resp":{{"status_code":{status},"status_msg":"x y"}}}}"#
        );
        let plain = scan_whole(body.as_bytes()).error;
        assert_eq!(plain, scan_whole(format!("data: {body}\n\n").as_bytes()).error);
        plain.map(|error| (error.code().map(str::to_owned), error.message().to_owned()))
    };
    assert_eq!(error("1002"), Some((Some("1002".into()), "x y".into())));
    assert_eq!(error("0"), None);
}

#[test]
fn error_of_minimax_is_read_in_first_event_with_data() {
    let error = r#"data: {"choices":null,"base_resp":{"status_code":1002,"status_msg":"x"}}"#;
    let word = r#"data: {"choices":[{"delta":{"content":"a"}}]}"#;
    let long = error.replace("null", &format!("\"{}\"", "a".repeat(2_000)));
    let (start, end) = error.split_once(",").unwrap();
    for stream in [
        format!("{error}\n\n{word}\n\n"),
        format!(": waiting\n\n{error}\n\n{word}\n\n"),
        format!(": waiting\r\n\r\nevent: error\r\n{error}\r\n\r\n{word}\r\n\r\n"),
        format!(": waiting\r{error}\n\n{word}\n\n"),
        format!("{start},\r\ndata: {end}\r\n\r\n{word}\r\n\r\n"),
        format!("{long}\n\n{word}\n\n"),
    ] {
        let error = scan_whole(stream.as_bytes()).error;
        assert_eq!(error.unwrap().code(), Some("1002"), "{stream}");
    }
}

#[test]
fn only_elements_of_outermost_array_are_read() {
    for body in [
        r#"[[{"usage":{"prompt_tokens":9}}]]"#,
        r#"[1, [{"usage":{"prompt_tokens":9}}], "{\"usage\":{\"prompt_tokens\":9}}"]"#,
        r#"{"a":[{"usage":{"prompt_tokens":9}}]}"#,
    ] {
        assert_eq!(scan_whole(body.as_bytes()).usage, None, "{body}");
    }
}

#[test]
fn headers_of_every_type_are_skipped() {
    let mut head = Vec::new();
    let values: [(u8, &[u8]); 9] = [
        (0, b""),
        (1, b""),
        (2, b"1"),
        (3, b"12"),
        (4, b"1234"),
        (5, b"12345678"),
        (6, b"\0\x03abc"),
        (8, b"12345678"),
        (9, b"1234567890123456"),
    ];
    for (kind, value) in values {
        head.extend(b"\x0b:event-type");
        head.push(kind);
        head.extend(value);
    }
    head.extend(b"\0\x07\0\0\x0d:message-type\x07\0\x09exception");
    let scanned = scan_whole(&with_head(&head, br#"{"message":"x"}"#));
    assert_eq!(scanned.error.unwrap().message(), "x");
}

#[test]
fn members_of_an_exception_are_read() {
    let throttled = [(":exception-type", "throttlingException"), (":message-type", "exception")];
    let body = br#"{"message":"Too many tokens","retryAfterSeconds":5}"#;
    let error = scan_whole(&message(&throttled, body)).error.unwrap();
    let refusal = BEDROCK.refusal_in_band(&error, paceline_limiter::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(refusal.delay, Some(std::time::Duration::from_secs(5)));
}

#[test]
fn empty_message_does_not_affect_the_next() {
    let last = event("x", r#"{"usage":{"prompt_tokens":2}}"#);
    for first in [
        event("x", r#"{"usage":{"prompt_tokens":1"#),
        event("x", "no JSON"),
        event("x", ""),
        event("chunk", r#"{"bytes":"no base64","#),
        message(&[], b""),
        with_head(b"\xffshort", b"{}"),
    ] {
        assert_eq!(scan_whole(&[first, last.clone()].concat()).usage, usage(2, 0));
    }
}

#[test]
fn invalid_prelude_ends_the_scan() {
    let good = event("x", r#"{"usage":{"prompt_tokens":2}}"#);
    for (at, lengths) in [(0, u32::MAX), (0, 0), (0, 15), (4, u32::MAX), (8, 1)] {
        let mut bad = good.clone();
        bad[at..at + 4].copy_from_slice(&lengths.to_be_bytes());
        bad[0] = 0;
        let mut scanner = Scanner::new(OPENAI, Some("application/vnd.amazon.eventstream"));
        scanner.feed(&bad);
        scanner.feed(&good);
        assert!(scanner.held_bytes() < BOUND);
        assert_eq!(scanner.finish(), Scanned::default(), "{lengths} at {at}");
    }
}

#[test]
fn fifty_megabytes_of_embeddings_need_bounded_memory() {
    let numbers = format!("[{}-0.5]", "-0.0123456789,".repeat(1_536));
    let base64 = format!("\"{}\"", "Zm9vYmFy+/9=".repeat(700));
    for (open, row, close, usage) in [
        ("{\"object\":\"list\",\"data\":[", numbers.as_str(), "]", usage(8, 0)),
        ("{\"object\":\"list\",\"data\":[", &base64, "]", usage(8, 0)),
        ("{\"embeddings\":{\"float\":[", &numbers, "]}", usage(8, 0)),
        ("[", &numbers, "]", None),
    ] {
        let row = format!("{row},");
        let end = format!("0{close},\"usage\":{{\"prompt_tokens\":8,\"total_tokens\":8}}}}");
        let rows = std::iter::repeat_n(row.as_bytes(), (50 << 20) / row.len());
        let all = [open.as_bytes()].into_iter().chain(rows).chain([end.as_bytes()]);
        let mut scanner = Scanner::new(OPENAI, Some("application/json"));
        let mut piece = Vec::new();
        for part in all {
            piece.extend_from_slice(part);
            while piece.len() >= PIECE {
                scanner.feed(&piece[..PIECE]);
                piece.drain(..PIECE);
                assert!(scanner.held_bytes() < BOUND);
            }
        }
        scanner.feed(&piece);
        assert_eq!(scanner.finish().usage, usage, "{open}");
    }
}

fn scan_whole(body: &[u8]) -> Scanned {
    let mut scanner = Scanner::new(OPENAI, None);
    scanner.feed(body);
    scanner.finish()
}

fn scan_in_chunks(fixture: &Fixture, mut piece: impl FnMut() -> usize) -> Scanned {
    let profile = Profile::named(fixture.profile).expect("a built-in profile");
    let mut scanner = Scanner::new(profile, Some(fixture.content_type));
    let mut body = &fixture.body[..];
    while !body.is_empty() {
        let (head, tail) = body.split_at(piece().min(body.len()));
        scanner.feed(head);
        body = tail;
    }
    scanner.finish()
}

const fn usage(input: u64, output: u64) -> Option<Usage> {
    Some(Usage { input, output, cache_read: 0, cache_write: 0, long_cache_write: 0 })
}

/// The maximum number of bytes that a scanner holds.
const BOUND: usize = 8 * 1024;

/// The number of bytes that are read from a connection together.
const PIECE: usize = 16 * 1024;
