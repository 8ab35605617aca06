//! Streams that end without their last event.

use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use paceline::middleware::{Ask, RateLimitLayer};
use paceline::price::{Price, Prices};
use paceline::provider::{ANTHROPIC, COMPATIBLE_USAGE, DEEPSEEK, GEMINI, OPENAI, Profile};
use paceline::quota::{Cost, Dimension, Limit, Quota, Usd, Window};

use super::inner::Frames;
use super::{available, builder, client_returning, held, send};

/// $2 per million input tokens, $10 per million output tokens.
const PRICE: (u64, u64) = (2, 10);

/// The bound of the output.
const BOUND: u64 = 2_000;

/// The most input tokens of [`Call::request`]: 137 bytes of body, and 7 around its text at OpenAI.
const INPUT: u64 = 137 + 7;

/// What may have been generated before the provider noticed, and the tokens around texts.
const UNSEEN: u64 = 500 + 32;

/// A request to a provider.
#[derive(Clone, Copy)]
struct Call {
    profile: Profile,
    path: &'static str,
    model: &'static str,
    /// Further fields of the request.
    fields: &'static str,
}

const CHAT: Call =
    Call { profile: OPENAI, path: "/v1/chat/completions", model: "gpt-4o", fields: "" };

const MESSAGES: Call =
    Call { profile: ANTHROPIC, path: "/v1/messages", model: "claude-opus-4-8", fields: "" };

impl Call {
    fn request(&self) -> Request<String> {
        let Self { model, fields, path, .. } = self;
        let messages = r#"[{"role": "user", "content": "Say this is a test"}]"#;
        let body = format!(
            r#"{{"model": "{model}", "max_tokens": {BOUND}, "stream": true, {fields}
                "messages": {messages}}}"#
        );
        Request::post(*path).body(body).unwrap()
    }

    /// Returns what is charged in this dimension if the whole body is read, or its error.
    async fn charged(self, dimension: Dimension, answer: fn() -> Frames) -> u64 {
        self.charged_by(dimension, self.request(), answer, usize::MAX).await
    }

    /// Returns what is charged in micro-dollars.
    async fn spent(self, answer: fn() -> Frames) -> u64 {
        self.charged(Dimension::usd(), answer).await
    }

    /// Returns what is charged if the body is dropped after a number of frames.
    async fn charged_by(
        self,
        dimension: Dimension,
        request: Request<String>,
        answer: fn() -> Frames,
        frames: usize,
    ) -> u64 {
        let price = Price::per_million(
            Usd::from_micros(PRICE.0 * 1_000_000),
            Usd::from_micros(PRICE.1 * 1_000_000),
        );
        let day = Window::new(Duration::from_secs(86_400)).unwrap();
        let quota = Quota::new().limit(Limit::new(dimension, AMOUNT, day));
        let limiter = builder().quota(self.model, quota).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone()).provider(self.profile);
        let layer = layer.prices(Prices::built_in().with(self.model, price));
        let mut client = client_returning(&layer, move || stream(answer()));
        let mut body = send(&mut client, request).await.into_body();
        for _ in 0..frames {
            if !matches!(body.frame().await, Some(Ok(_))) {
                break;
            }
        }
        drop(body);
        assert_eq!(held(&limiter, self.model), [0]);
        AMOUNT - available(&limiter, self.model)[0]
    }
}

const AMOUNT: u64 = 1_000_000_000;

fn stream(frames: Frames) -> Response<Frames> {
    let mut response = frames.into_response();
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

fn events(events: &[&str]) -> Frames {
    let event = |frames: Frames, event: &&str| frames.data(format!("data: {event}\n\n"));
    events.iter().fold(Frames::default(), event)
}

const HELLO: &str = r#"{"id": "x", "choices": [{"delta": {"content": "Hello"}}], "usage": null}"#;
const MESSAGE_START: &str =
    r#"{"type": "message_start", "message": {"usage": {"input_tokens": 12, "output_tokens": 1}}}"#;
const TEXT: &str =
    r#"{"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hello"}}"#;

#[tokio::test(start_paused = true)]
async fn stream_ending_before_its_last_event_is_charged_as_cut() {
    const VLLM: &str =
        r#"{"choices": [{}], "usage": {"prompt_tokens": 9, "completion_tokens": 0}}"#;
    const VLLM_2: &str =
        r#"{"choices": [{}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}"#;
    const VLLM_3: &str =
        r#"{"choices": [{}], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}"#;
    const GEMINI_2: &str = r#"{"candidates": [{"content": {"parts": [{"text": "a"}]}}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2}}"#;
    const GEMINI_3: &str = r#"{"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3}}"#;
    let messages = MESSAGES;
    let vllm = Call { profile: COMPATIBLE_USAGE, model: "m", ..CHAT };
    let path = "/v1beta/models/m:streamGenerateContent";
    let gemini = Call { profile: GEMINI, path, model: "m", fields: "" };
    type Case = (Call, fn() -> Frames, fn() -> Frames, u64);
    let cases: [Case; 5] = [
        (messages, || events(&[MESSAGE_START]), || events(&[MESSAGE_START, MESSAGE_STOP]), 1),
        (vllm, || events(&[VLLM, VLLM_2, VLLM_3]), || events(&[VLLM, VLLM_2, VLLM_3, DONE]), 3),
        (gemini, || events(&[GEMINI_2]), || events(&[GEMINI_2, GEMINI_3]), 3),
        (
            gemini,
            || Frames::default().data(format!("[{GEMINI_2}\n")),
            || Frames::default().data(format!("[{GEMINI_2},\n{GEMINI_3}]\n")),
            3,
        ),
        (
            gemini,
            || events(&[BLOCKED_BEGIN]),
            || {
                events(&[
                    r#"{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}"#,
                ])
            },
            0,
        ),
    ];
    const BLOCKED_BEGIN: &str = r#"{"usageMetadata": {"promptTokenCount": 9}}"#;
    const MESSAGE_STOP: &str = r#"{"type": "message_stop"}"#;
    const DONE: &str = "[DONE]";
    for (at, (call, cut, whole, output)) in cases.into_iter().enumerate() {
        let charged = call.charged(Dimension::OutputTokens, whole).await;
        assert_eq!(charged, output, "whole stream {at}");
        let dropped =
            call.charged_by(Dimension::OutputTokens, call.request(), cut, cut_frames(at)).await;
        let charged = call.charged(Dimension::OutputTokens, cut).await;
        assert!(charged > 500, "cut stream {at}: {charged}");
        assert_eq!(charged, dropped, "cut stream {at}");
    }
}

/// The frames of the streams that are cut.
fn cut_frames(case: usize) -> usize {
    [1, 3, 1, 1, 1][case]
}

#[tokio::test(start_paused = true)]
async fn cut_stream_is_charged_for_what_was_received() {
    let hello = || events(&[HELLO, HELLO]).error();
    assert_eq!(CHAT.spent(hello).await, INPUT * PRICE.0 + (10 + UNSEEN) * PRICE.1);
    // The input is stated.
    let hello = || events(&[MESSAGE_START, TEXT]).error();
    assert_eq!(MESSAGES.spent(hello).await, 12 * PRICE.0 + (5 + UNSEEN) * PRICE.1);
    assert_eq!(MESSAGES.charged(Dimension::OutputTokens, hello).await, 5 + UNSEEN);
    assert_eq!(MESSAGES.charged(Dimension::InputTokens, hello).await, 12);
    // The stream shows the reasoning of all models.
    let deepseek = Call { profile: DEEPSEEK, model: "deepseek-reasoner", ..CHAT };
    let reasoning =
        || events(&[r#"{"choices": [{"delta": {"reasoning_content": "Hmm", "content": null}}]}"#]);
    assert_eq!(deepseek.charged(Dimension::OutputTokens, reasoning).await, 3 + UNSEEN);
}

#[tokio::test(start_paused = true)]
async fn cut_stream_is_charged_its_bound_at_most() {
    let long = || {
        let text = "x".repeat(1_900);
        let chunk = format!(r#"{{"choices": [{{"delta": {{"content": "{text}"}}}}]}}"#);
        events(&[&chunk]).error()
    };
    assert_eq!(CHAT.spent(long).await, INPUT * PRICE.0 + BOUND * PRICE.1);
}

#[tokio::test(start_paused = true)]
async fn stream_without_usage_is_charged_its_text() {
    let whole = || events(&[HELLO, HELLO, "[DONE]"]);
    assert_eq!(CHAT.spent(whole).await, INPUT * PRICE.0 + (10 + 32) * PRICE.1);
}

#[tokio::test(start_paused = true)]
async fn cut_stream_with_hidden_reasoning_keeps_reservation() {
    let most = |input: u64| input * PRICE.0 + BOUND * PRICE.1;
    let thinking = r#""thinking": {"type": "adaptive"},"#;
    let none = r#""reasoning_effort": "none","#;
    let hello = || events(&[HELLO]).error();
    let text = || events(&[MESSAGE_START, TEXT]).error();
    let kept: [(Call, fn() -> Frames); 11] = [
        (Call { fields: r#""background": true,"#, ..CHAT }, hello),
        (Call { fields: r#""web_search_options": {},"#, ..CHAT }, hello),
        (
            Call { fields: r#""mcp_servers": [{"type": "url", "url": "https://m"}],"#, ..MESSAGES },
            text,
        ),
        (Call { model: "gpt-5.4", ..CHAT }, hello),
        (Call { model: "o3-mini", ..CHAT }, hello),
        (Call { fields: r#""reasoning_effort": "low","#, ..CHAT }, hello),
        (Call { fields: r#""n": 2,"#, ..CHAT }, hello),
        (Call { profile: COMPATIBLE_USAGE, ..CHAT }, hello),
        (Call { model: "claude-opus-5", ..MESSAGES }, text),
        (Call { fields: thinking, ..MESSAGES }, text),
        (
            Call {
                fields: r#""tools": [{"type": "web_search_20250305", "name": "web_search"}],"#,
                ..MESSAGES
            },
            text,
        ),
    ];
    for (at, (call, answer)) in kept.into_iter().enumerate() {
        let spent = call.spent(answer).await;
        assert!(spent >= most(18), "case {at}: {spent}");
    }
    let received: [(Call, fn() -> Frames); 3] = [
        (Call { model: "gpt-5.4", fields: none, ..CHAT }, hello),
        (Call { model: "gpt-5.4", fields: r#""reasoning": {"effort": "none"},"#, ..CHAT }, hello),
        (
            Call {
                model: "claude-opus-5",
                fields: r#""thinking": {"type": "disabled"},"#,
                ..MESSAGES
            },
            text,
        ),
    ];
    for (at, (call, answer)) in received.into_iter().enumerate() {
        let spent = call.spent(answer).await;
        assert!(spent < most(0) / 2, "case {at}: {spent}");
    }
}

#[tokio::test(start_paused = true)]
async fn stream_cut_before_its_first_event_keeps_reservation() {
    let most = INPUT * PRICE.0 + BOUND * PRICE.1;
    let comments: fn() -> Frames = || Frames::from(": keep-alive\n\n").error();
    for answer in [comments, || Frames::default().error(), || Frames::default()] {
        assert_eq!(CHAT.spent(answer).await, most);
    }
}

#[tokio::test(start_paused = true)]
async fn cut_stream_with_cost_of_caller_keeps_it() {
    let mut request = MESSAGES.request();
    request.extensions_mut().insert(Ask::new().cost(Cost::new().output_tokens(1_500)));
    let text = || events(&[MESSAGE_START, TEXT]).error();
    let charged = MESSAGES.charged_by(Dimension::OutputTokens, request, text, usize::MAX);
    assert_eq!(charged.await, 1_500);
}

/// The provider goes on while nobody reads, until the buffers are full.
#[tokio::test(start_paused = true)]
async fn cut_stream_is_charged_for_the_time_it_was_not_read() {
    for (is_caught_up, unread) in [(true, 0), (false, 3 * 250)] {
        let quota = Quota::new().otpm(AMOUNT);
        let limiter = builder().quota(MESSAGES.model, quota).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone()).provider(ANTHROPIC);
        let mut client = client_returning(&layer, || {
            stream(events(&[MESSAGE_START, TEXT]).pause().data("data: {}\n\n"))
        });
        let mut body = send(&mut client, MESSAGES.request()).await.into_body();
        for _ in 0..2 {
            body.frame().await.unwrap().unwrap();
        }
        tokio::time::advance(Duration::from_secs(3)).await;
        if is_caught_up {
            // Pending, and then another event.
            body.frame().await.unwrap().unwrap();
        }
        drop(body);
        let used = limiter.stats(MESSAGES.model).limits[0].used;
        assert_eq!(used, 5 + UNSEEN + unread, "{is_caught_up}");
    }
}
