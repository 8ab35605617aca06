//! Responses that are retried, and responses that aren't.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use paceline::middleware::{Http, Journey, RateLimitLayer};
use paceline::provider::{ANTHROPIC, BEDROCK, GEMINI, MINIMAX, OLLAMA, OPENAI};
use paceline::quota::Quota;
use tower::{Service, ServiceExt};

use super::super::inner::{Frames, InnerError, Strict};
use super::super::{builder, chat};
use super::{LIMITED, Script, answer, limiter_with_quota, ok, refused};
use paceline_testing::event_stream::message;

/// Returns the final status and the times of the attempts in whole seconds.
async fn seconds(first: Response<Frames>, retries: u32) -> (u16, Vec<u64>) {
    let (status, at) = sent(first, retries).await;
    (status, at.into_iter().map(|at| at / 1_000).collect())
}

/// Returns the final status and the times of the attempts in milliseconds.
async fn sent(first: Response<Frames>, retries: u32) -> (u16, Vec<u64>) {
    let limiter = limiter_with_quota();
    let script = Script::new(&limiter, [first, ok()]);
    let client = script.client(&RateLimitLayer::new(limiter).retry(retries));
    let response = client.oneshot(chat("gpt-4o")).await.unwrap();
    (response.status().as_u16(), script.call_times())
}

#[tokio::test(start_paused = true)]
async fn refused_request_is_retried_after_stated_delay() {
    assert_eq!(seconds(refused("7"), 1).await, (200, vec![0, 7]));
}

#[tokio::test(start_paused = true)]
async fn delay_in_refusal_body_is_respected() {
    let body = r#"{"error": {"message": "Rate limit reached. Please try again in 20s.",
        "type": "tokens", "code": "rate_limit_exceeded"}}"#;
    assert_eq!(seconds(answer(429, &[], body.into()), 1).await, (200, vec![0, 20]));
}

#[tokio::test(start_paused = true)]
async fn transient_failure_without_delay_is_retried_after_back_off() {
    for status in [408, 409, 425, 500, 502, 503, 504, 529] {
        let (status_after, at) = sent(answer(status, &[], "oh".into()), 1).await;
        assert_eq!((status_after, at.len()), (200, 2), "{status}");
        // A back-off is half a second, minus up to a quarter.
        assert!((375..501).contains(&at[1]), "{status}: {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn delay_of_zero_or_past_uses_back_off() {
    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    let text = r#"{"error": {"message": "Please try again in 0s.", "code": "slow_down"}}"#;
    for first in [
        refused("0"),
        refused("-1"),
        refused("inf"),
        refused(past),
        answer(500, &[("retry-after", "0")], "oh".into()),
        answer(500, &[("retry-after", past)], "oh".into()),
        answer(429, &[], text.into()),
    ] {
        let description = format!("{first:?}");
        let (status, at) = sent(first, 1).await;
        assert!(status == 200 && at[1] >= 375, "{description}: {at:?}");
    }
    let limiter = limiter_with_quota();
    let event = format!("data: {text}\n\n");
    let script = Script::new(&limiter, [answer(200, STREAM, Frames::default().data(event)), ok()]);
    let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(1);
    script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
    assert!(script.call_times()[1] >= 375, "{:?}", script.call_times());
}

#[tokio::test(start_paused = true)]
async fn delay_of_failure_applies_to_failed_request_only() {
    let limiter = limiter_with_quota();
    let failed = answer(500, &[("retry-after", "9")], "oh".into());
    let script = Script::new(&limiter, [failed, ok(), ok()]);
    let mut client = script.client(&RateLimitLayer::new(limiter).retry(1));
    let first = tokio::spawn(client.ready().await.unwrap().call(chat("gpt-4o")));
    super::super::settle_down().await;
    client.oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    assert_eq!(script.call_times(), [0, 0, 9_000]);
}

#[tokio::test(start_paused = true)]
async fn delay_of_an_hour_uses_back_off() {
    let failed = answer(500, &[("retry-after", "3600")], "oh".into());
    let (status, at) = sent(failed, 1).await;
    assert!(status == 200 && at[1] <= 500, "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn permanent_failure_is_not_retried() {
    let spent = r#"{"error": {"message": "You exceeded your current quota. Please try again in 2s.",
        "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
    let answers = [
        answer(429, &[("retry-after", "1")], spent.into()),
        answer(429, &[("retry-after", "1"), ("x-should-retry", "false")], LIMITED.into()),
        answer(500, &[("x-should-retry", "false")], "oh".into()),
        answer(400, &[], "no".into()),
        answer(401, &[("x-should-retry", "true")], "no".into()),
        answer(404, &[], "no".into()),
    ];
    for first in answers {
        let status = first.status().as_u16();
        assert_eq!(sent(first, 3).await, (status, vec![0]));
    }
    let retryable = answer(404, &[("x-should-retry", "true")], "no".into());
    assert_eq!(sent(retryable, 3).await.0, 200);
}

/// A gateway may strip `retry-after`.
#[tokio::test(start_paused = true)]
async fn refusal_of_anthropic_without_retry_after_is_retried_with_back_off() {
    let body = r#"{"type": "error", "error": {"type": "rate_limit_error", "message": "This request would exceed your organization's rate limit"}}"#;
    let request = r#"{"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}"#;
    let cases = [(None, 200, 3), (Some("true"), 200, 3), (Some("false"), 429, 1)];
    for (should_retry, status, attempts) in cases {
        let builder = builder().provider(ANTHROPIC).quota("claude-x", Quota::new().rpm(600));
        let limiter = builder.build().unwrap();
        let headers: Vec<_> =
            should_retry.map(|value| ("x-should-retry", value)).into_iter().collect();
        let refused = || answer(429, &headers, body.into());
        let script = Script::new(&limiter, [refused(), refused(), ok()]);
        let client = script.client(&RateLimitLayer::new(limiter).retry(3));
        let request = Request::post("/v1/messages").body(request.to_owned()).unwrap();
        let response = client.oneshot(request).await.unwrap();
        let times = script.call_times();
        assert_eq!(
            (response.status().as_u16(), times.len()),
            (status, attempts),
            "{should_retry:?}"
        );
        assert!(times.is_sorted_by(|earlier, later| earlier < later), "{times:?}");
        assert!(*times.last().unwrap() < 10_000, "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn daily_limit_is_retried_only_with_stated_delay() {
    let day = r#"{"error": {"message": "Rate limit reached on requests per day (RPD): Limit 200.",
        "type": "requests", "code": "rate_limit_exceeded"}}"#;
    assert_eq!(sent(answer(429, &[], day.into()), 3).await, (429, vec![0]));
    let stated = answer(429, &[("retry-after", "432")], day.into());
    assert_eq!(seconds(stated, 3).await, (200, vec![0, 432]));
}

#[tokio::test(start_paused = true)]
async fn response_to_last_attempt_is_returned() {
    assert_eq!(sent(refused("7"), 0).await, (429, vec![0]));
    let limiter = limiter_with_quota();
    let answers = [refused("1"), answer(500, &[], "one".into()), answer(502, &[], "two".into())];
    let script = Script::new(&limiter, answers);
    let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(2));
    let response = client.oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!((response.status(), script.call_times().len()), (StatusCode::BAD_GATEWAY, 3));
    assert_eq!(super::super::read(response).await.unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_sends_same_request_and_is_charged() {
    let limiter = limiter_with_quota();
    let script = Script::new(&limiter, [refused("0"), answer(500, &[], "oh".into()), ok()]);
    let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(5));
    let journey = Journey::new();
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(journey.clone());
    let response = client.oneshot(request).await.unwrap();
    super::super::read(response).await.unwrap();
    let calls = script.calls.lock().clone();
    assert!(calls.iter().all(|(_, body)| *body == calls[0].1), "{calls:?}");
    let facts = journey.facts();
    assert_eq!((facts.tries(), facts.status.map(|s| s.as_u16())), (3, Some(200)));
    let earlier: Vec<_> = facts.earlier.iter().filter_map(|attempt| attempt.status).collect();
    assert_eq!(earlier, [StatusCode::TOO_MANY_REQUESTS, StatusCode::INTERNAL_SERVER_ERROR]);
    assert!(
        facts.earlier.iter().all(|attempt| attempt.charged.is_some() && attempt.usage.is_none())
    );
    assert_eq!(facts.usage.map(|usage| usage.output), Some(9));
}

/// The inner error of another rate-limit layer reports that the request was not sent.
#[tokio::test(start_paused = true)]
async fn unsent_request_is_retried_and_possibly_sent_one_is_not() {
    let limiter = limiter_with_quota();
    let script = Script::of(&limiter, [Err(InnerError), Ok(ok())]);
    let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(3));
    client.oneshot(chat("gpt-4o")).await.unwrap_err();
    assert_eq!(script.call_times(), [0]);

    let inner = super::super::builder().quota("i", paceline::Quota::new().rpm(1)).build().unwrap();
    let further_in = RateLimitLayer::new(inner.clone()).key("i").reject();
    let script = Script::new(&limiter, [ok(), ok()]);
    let service: Strict<_, _> = script.service();
    let stack = tower::ServiceBuilder::new()
        .layer(RateLimitLayer::new(limiter.clone()).retry(20))
        .layer(further_in)
        .service(service);
    stack.clone().oneshot(chat("gpt-4o")).await.unwrap();
    let journey = Journey::new();
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(journey.clone());
    stack.oneshot(request).await.unwrap();
    let times = script.call_times();
    assert!((60_000..69_000).contains(&times[1]), "{times:?}");
    let facts = journey.facts();
    assert!(facts.earlier.len() > 8 && facts.charged.is_some(), "{facts:?}");
    assert!(
        facts.earlier.iter().all(|attempt| attempt.charged.is_none()),
        "unsent attempts are not charged"
    );
}

const STREAM: &[(&str, &str)] = &[("content-type", "text/event-stream")];

#[tokio::test(start_paused = true)]
async fn error_is_retried_as_first_event_of_a_stream_alone() {
    const ERROR: &str =
        "data: {\"error\": {\"code\": \"server_error\", \"message\": \"Sorry\"}}\n\n";
    const CHUNK: &str = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\n\n";
    let first = || answer(200, STREAM, Frames::from(": wait\n").data("\n").data(ERROR));
    let cut = || answer(200, STREAM, Frames::from(": wait\n\n").error());
    let cut_json = || answer(200, &[], Frames::from("{\"id\":\"batch_").error());
    let later = || answer(200, STREAM, Frames::from(CHUNK).data(ERROR));
    let silent = || answer(200, STREAM, Frames::from(": wait\n\n").hang());
    for (answers, tries, text) in [
        (vec![first(), cut(), later()], 3, format!("{CHUNK}{ERROR}")),
        (vec![later(), ok()], 1, format!("{CHUNK}{ERROR}")),
        (vec![first(), ok()], 2, super::super::USAGE.to_owned()),
        (vec![cut_json(), ok()], 1, String::new()),
    ] {
        let limiter = limiter_with_quota();
        let script = Script::new(&limiter, answers);
        let client = script.client(&RateLimitLayer::new(limiter).retry(5));
        let response = client.oneshot(chat("gpt-4o")).await.unwrap();
        let read = super::super::read(response).await;
        // A body that breaks off isn't read to its end.
        assert_eq!(read.ok(), Some(text.into()).filter(|text: &Bytes| !text.is_empty()));
        assert_eq!(script.call_times().len(), tries);
    }
    // A stream that is silent is passed on after a while.
    let limiter = limiter_with_quota();
    let script = Script::new(&limiter, [silent()]);
    let client = script.client(&RateLimitLayer::new(limiter).retry(5));
    let mut body = client.oneshot(chat("gpt-4o")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), ": wait\n\n");
}

#[tokio::test(start_paused = true)]
async fn error_at_the_beginning_of_any_success_is_retried() {
    let throttled = [(":exception-type", "throttlingException"), (":message-type", "exception")];
    let busy = r#"{"id":"","choices":null,"base_resp":{"status_code":1002,"status_msg":"rpm"}}"#;
    for (profile, kind, first) in [
        (OLLAMA, "application/x-ndjson", Bytes::from("{\"error\": \"an error occurred\"}\n")),
        (GEMINI, "application/json", "[{\"error\": {\"code\": 503, \"message\": \"Busy\"}}".into()),
        (MINIMAX, "application/json", busy.into()),
        (
            OPENAI,
            "text/event-stream",
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"error\":null}}\n\n\
             data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n"
                .into(),
        ),
        (BEDROCK, "application/vnd.amazon.eventstream", message(&throttled, b"{}").into()),
    ] {
        let limiter = limiter_with_quota();
        let frames = Frames::from("").data(first).data("\n").hang();
        let script = Script::new(&limiter, [answer(200, &[("content-type", kind)], frames), ok()]);
        let layer = RateLimitLayer::new(limiter).provider(profile).retry(1);
        let response = script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
        assert_eq!(super::super::read(response).await.unwrap(), super::super::USAGE, "{kind}");
    }
}

/// A stored response was refused before.
#[tokio::test(start_paused = true)]
async fn error_of_a_stored_response_is_neither_retried_nor_a_refusal() {
    let stored = r#"{"error": {"code": "rate_limit_exceeded", "message": "Slow down"}, "usage": {"input_tokens": 9}}"#;
    let limiter = limiter_with_quota();
    let script = Script::new(&limiter, [answer(200, &[], stored.into()), ok()]);
    let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(5));
    let request = Request::get("/v1/responses/resp_1").body(String::new()).unwrap();
    let response = client.oneshot(request).await.unwrap();
    assert_eq!(super::super::read(response).await.unwrap(), stored);
    assert_eq!(script.call_times().len(), 1);
    let keys = limiter.state().keys();
    assert!(keys.iter().all(|key| limiter.stats(key).cooling_until.is_none()), "{keys:?}");
}

/// A body without events is passed on with its first bytes, and a long object with the first 16 KiB of it.
#[tokio::test(start_paused = true)]
async fn other_success_is_passed_on_early() {
    let long = format!("{{\"data\": \"{}", "a".repeat(20_000));
    for first in [Bytes::from("ID3 audio"), Bytes::from(vec![0; 64]), long.into()] {
        let limiter = limiter_with_quota();
        let frames = Frames::from("").data(first.clone()).hang();
        let script = Script::new(&limiter, [answer(200, &[], frames)]);
        let clock = limiter.clone();
        let client = script.client(&RateLimitLayer::new(limiter).retry(5));
        let start = clock.now();
        let mut body = client.oneshot(chat("gpt-4o")).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), first);
        assert_eq!(clock.now(), start);
    }
}

#[tokio::test(start_paused = true)]
async fn success_is_judged_in_whole_mode() {
    let event = "data: {\"error\": {\"code\": \"server_error\", \"message\": \"Sorry\"}}\n\n";
    let layer = |limiter| RateLimitLayer::new(limiter).retry(1);

    let limiter = limiter_with_quota();
    let broken = answer(200, &[], Frames::from("{").error());
    let wrong = "data: {\"error\": {\"code\": \"invalid_prompt\", \"message\": \"No\"}}\n\n";
    let answers = [answer(200, STREAM, event.into()), broken, answer(200, STREAM, wrong.into())];
    let script = Script::new(&limiter, answers);
    let layer = layer(limiter).retry(9).observe(Http::new(OPENAI).whole());
    let response = script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(super::super::read(response).await.unwrap(), wrong);
    assert_eq!(script.call_times().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn success_without_content_is_retried_in_whole_mode() {
    let limiter = limiter_with_quota();
    let bodies = ["", "<html>Sign in</html>", "{\"choices\": [", "null", "{}"];
    let cut = "data: {\"choices\": [{\"delta\": {}}]}\n\n";
    let answers = bodies.map(|body| answer(200, &[], body.into())).into_iter();
    let answers: Vec<_> = answers.chain([answer(200, STREAM, cut.into()), ok()]).collect();
    let script = Script::new(&limiter, answers);
    let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(9);
    let response = script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(super::super::read(response).await.unwrap(), super::super::USAGE);
    assert_eq!(script.call_times().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn whole_mode_is_kept_when_provider_changes() {
    let limiter = limiter_with_quota();
    let broken = answer(200, &[], Frames::from("{").error());
    let script = Script::new(&limiter, [broken, ok()]);
    let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(1);
    let layer = layer.provider(paceline::provider::GROQ);
    script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(script.call_times().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn truncated_error_is_judged_by_status() {
    for (status, tries) in [(401, 1), (400, 1), (500, 2)] {
        let limiter = limiter_with_quota();
        let broken = answer(status, &[], Frames::from("{").error());
        let script = Script::new(&limiter, [broken, ok()]);
        let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(3);
        script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
        assert_eq!(script.call_times().len(), tries, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn back_offs_double() {
    let limiter = limiter_with_quota();
    let failed = || answer(500, &[], "oh".into());
    let script = Script::new(&limiter, [failed(), failed(), failed(), failed(), ok()]);
    let client = script.client(&RateLimitLayer::new(limiter).retry(4));
    client.oneshot(chat("gpt-4o")).await.unwrap();
    let times = script.call_times();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, whole) in waits.iter().zip([500, 1_000, 2_000, 4_000]) {
        assert!((whole * 3 / 4..=whole + 1).contains(wait), "{waits:?}");
    }
}
