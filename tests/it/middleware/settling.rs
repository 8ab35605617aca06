//! What a request is charged in the end.

use http::{Request, Response};
use tollgate::limiter::Limiter;
use tollgate::middleware::RateLimitLayer;
use tollgate::provider::{COMPATIBLE, COMPATIBLE_USAGE, OPENAI, Profile};
use tollgate::quota::Quota;

use super::inner::Frames;
use super::{USAGE, answering, available, builder, chat, held, read, send};

/// 1,000 tokens a minute for `gpt-4o`.
fn thousand(profile: Profile) -> Limiter {
    let quota = Quota::new().tpm(1_000);
    builder().provider(profile).quota("gpt-4o", quota).build().unwrap()
}

/// What is left of the thousand while the response is on its way, and when its body has been read.
async fn left(
    profile: Profile,
    answer: impl Fn() -> Response<Frames> + Send + Sync + 'static,
) -> (u64, u64) {
    let limiter = thousand(profile);
    let mut client = answering(&RateLimitLayer::new(limiter.clone()), answer);
    let response = send(&mut client, chat("gpt-4o")).await;
    let before = available(&limiter, "gpt-4o")[0];
    let _ = read(response).await;
    assert_eq!(held(&limiter, "gpt-4o"), [0]);
    (before, available(&limiter, "gpt-4o")[0])
}

fn sse() -> Response<Frames> {
    let events = format!(
        "data: {{\"choices\": [{{\"delta\": {{\"content\": \"Hi\"}}}}], \"usage\": null}}\n\n\
         data: {USAGE}\n\ndata: [DONE]\n\n"
    );
    // Every byte in a frame of its own.
    let frames = events.bytes().fold(Frames::default(), |frames, byte| frames.data(vec![byte]));
    let mut response = frames.into_response();
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

/// What is reserved for [`chat`]: its charge at OpenAI is bytes / 4, one message, one for the
/// request, and `max_tokens`.
const AT_OPENAI: u64 = 5 + 1 + 1 + 50;

#[tokio::test(start_paused = true)]
async fn usage_settles_where_usage_is_charged() {
    let json = || Frames::from(USAGE).into_response();
    for (before, after) in [left(COMPATIBLE_USAGE, json).await, left(COMPATIBLE_USAGE, sse).await] {
        assert!(before <= 1_000 - AT_OPENAI, "{before} left");
        assert_eq!(after, 1_000 - 21);
    }
}

#[tokio::test(start_paused = true)]
async fn usage_changes_nothing_where_admission_is_charged() {
    let json = || Frames::from(USAGE).into_response();
    for (before, after) in [left(OPENAI, json).await, left(OPENAI, sse).await] {
        assert_eq!((before, after), (1_000 - AT_OPENAI, 1_000 - AT_OPENAI));
    }
}

/// Nobody knows how an unknown server counts: the most of both rules is safe under either.
#[tokio::test(start_paused = true)]
async fn an_unknown_server_is_charged_its_admission_or_its_usage_whichever_is_more() {
    let little = || Frames::from(USAGE).into_response();
    assert_eq!(left(COMPATIBLE, little).await.1, 1_000 - AT_OPENAI);
    let much = r#"{"usage": {"prompt_tokens": 12, "completion_tokens": 900}}"#;
    let much = move || Frames::from(much).into_response();
    assert_eq!(left(COMPATIBLE, much).await.1, 1_000 - 912);
}

#[tokio::test(start_paused = true)]
async fn more_than_was_reserved_becomes_debt() {
    let json = r#"{"usage": {"prompt_tokens": 12, "completion_tokens": 900}}"#;
    let (_, after) = left(COMPATIBLE_USAGE, move || Frames::from(json).into_response()).await;
    assert_eq!(after, 1_000 - 912);
}

#[tokio::test(start_paused = true)]
async fn a_compressed_body_is_left_unread_and_keeps_its_reservation() {
    for (encoding, is_read) in [("gzip", false), ("br", false), ("identity", true)] {
        let (before, after) = left(COMPATIBLE_USAGE, move || {
            let mut response = Frames::from(USAGE).into_response();
            response.headers_mut().insert("content-encoding", encoding.parse().unwrap());
            response
        })
        .await;
        assert_eq!(after == 1_000 - 21, is_read, "{encoding}");
        assert_eq!(after == before, !is_read, "{encoding}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_keeps_its_reservation() {
    let cut = &USAGE[..USAGE.len() - 4];
    let (before, after) =
        left(COMPATIBLE_USAGE, move || Frames::from(cut).error().into_response()).await;
    assert_eq!(before, after);
    let (before, after) = left(COMPATIBLE_USAGE, || Frames::from("no JSON").into_response()).await;
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn usage_that_was_seen_counts_though_the_body_breaks_off_later() {
    let (_, after) = left(COMPATIBLE_USAGE, || Frames::from(USAGE).error().into_response()).await;
    assert_eq!(after, 1_000 - 21);
}

#[tokio::test(start_paused = true)]
async fn an_error_status_keeps_the_charge_whatever_its_body_says() {
    let (before, after) = left(COMPATIBLE_USAGE, || {
        let mut response = Frames::from(USAGE).into_response();
        *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
    .await;
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn each_endpoint_is_read_as_the_provider_charges_it() {
    let cases = [
        ("/v1/chat/completions", r#""messages": [{"role": "user", "content": "12345678"}]"#, 4),
        ("/v1/completions", r#""prompt": "12345678", "max_tokens": 7"#, 9),
        ("/v1/embeddings", r#""input": ["1234", "5678"]"#, 2),
    ];
    for (path, fields, charge) in cases {
        let limiter = thousand(OPENAI);
        let mut client = answering(&RateLimitLayer::new(limiter.clone()), || {
            Frames::from(USAGE).into_response()
        });
        let body = format!(r#"{{"model": "gpt-4o", {fields}}}"#);
        let request = Request::post(format!("https://api.openai.com{path}?x=y")).body(body);
        read(send(&mut client, request.unwrap()).await).await.unwrap();
        assert_eq!(1_000 - available(&limiter, "gpt-4o")[0], charge, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn responses_state_their_usage_in_words_of_their_own() {
    let limiter = thousand(COMPATIBLE_USAGE);
    let body = r#"{"object": "response", "usage": {"input_tokens": 30, "output_tokens": 4}}"#;
    let mut client = answering(&RateLimitLayer::new(limiter.clone()), move || {
        Frames::from(body).into_response()
    });
    let request = r#"{"model": "gpt-4o", "input": "Hello", "max_output_tokens": 60}"#;
    let request = Request::post("/v1/responses").body(request.to_owned()).unwrap();
    let response = send(&mut client, request).await;
    assert!(available(&limiter, "gpt-4o")[0] <= 1_000 - 60);
    read(response).await.unwrap();
    assert_eq!(available(&limiter, "gpt-4o"), [1_000 - 34]);
}
