//! Streams without the chunk of usage that the client hasn't asked for.

use bytes::Bytes;
use http_body_util::BodyExt;
use paceline::middleware::WithoutUsageChunk;

use super::inner::{Frames, InnerError};

const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\"usage\":null}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

async fn filtered(frames: Frames) -> Result<Bytes, InnerError> {
    Ok(WithoutUsageChunk::new(frames).collect().await?.to_bytes())
}

/// Returns the text in frames of this many bytes.
fn in_pieces(text: &str, piece: usize) -> Frames {
    let pieces = text.as_bytes().chunks(piece);
    pieces.fold(Frames::default(), |frames, piece| frames.data(piece.to_vec()))
}

#[tokio::test]
async fn usage_chunk_alone_is_removed_at_any_split() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let spaced = USAGE.replace("[]", "[ ]").replace("\"choices\":", "\"choices\": ");
    let long = HI.replace("Hi", &"x".repeat(40_000));
    for (stream, expected) in [
        ([HI, USAGE, DONE].concat(), [HI, DONE].concat()),
        ([HI, HI, USAGE, HI, DONE].concat(), [HI, HI, HI, DONE].concat()),
        (crlf(&[HI, USAGE, DONE].concat()), crlf(&[HI, DONE].concat())),
        ([HI, &spaced, DONE].concat(), [HI, DONE].concat()),
        ([&long, USAGE, DONE].concat(), [&*long, DONE].concat()),
        (USAGE.to_owned(), String::new()),
    ] {
        for piece in [1, 2, 3, 50, 1_000, usize::MAX] {
            if piece == 1 && stream.len() > 10_000 {
                continue;
            }
            let bytes = filtered(in_pieces(&stream, piece)).await.unwrap();
            assert!(bytes == expected.as_bytes(), "{stream} in pieces of {piece}: {bytes:?}");
        }
    }
}

#[tokio::test]
async fn other_chunks_are_unchanged() {
    let with_choice = "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":2}}\n\n";
    let filters = "data: {\"choices\":[],\"prompt_filter_results\":[],\"usage\":null}\n\n";
    let in_text = HI.replace("Hi", r#"{\"choices\":[],\"usage\":{\"prompt_tokens\":2}}"#);
    let long = format!("data: {}\n\n", "x".repeat(70_000));
    for stream in [
        "",
        "no events",
        ": keep-alive\n\n",
        with_choice,
        filters,
        &in_text,
        &long,
        // Cut off.
        &[HI, &USAGE[..USAGE.len() - 1]].concat(),
        &[HI, &HI[..9]].concat(),
        // After an event that is too long to be held back.
        &[&*long, USAGE].concat(),
    ] {
        for piece in [7, 1_000, usize::MAX] {
            let bytes = filtered(in_pieces(stream, piece)).await.unwrap();
            let is_skipped = piece == usize::MAX && stream.len() > 70_002;
            assert!(is_skipped || bytes == stream.as_bytes(), "{piece}: {bytes:?}");
        }
    }
}

#[tokio::test]
async fn events_before_an_error_are_forwarded() {
    let mut body = WithoutUsageChunk::new(in_pieces(&[HI, &HI[..9]].concat(), 4).error());
    let mut bytes = Vec::new();
    let error = loop {
        match body.frame().await.expect("an error at the end") {
            Ok(frame) => bytes.extend(frame.into_data().unwrap()),
            Err(error) => break error,
        }
    };
    assert_eq!((bytes, error), ([HI, &HI[..9]].concat().into_bytes(), InnerError));
    assert!(body.frame().await.is_none());
}
