//! Property: a request that a provider always refuses, in whatever way, never delays the others of its key by more than
//! 5 s in all. A reduction that doesn't test delays obeys what the provider states, as its user has chosen.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use paceline::limiter::{Limiter, TokioClock};
use paceline::middleware::RateLimitLayer;
use paceline::provider::OPENAI;
use paceline::quota::Quota;
use parking_lot::Mutex;
use proptest::prelude::*;
use tower::{Layer, ServiceExt};

use super::inner::{Frames, Strict};
use super::{S, USAGE};

/// A refusal: its status, `Retry-After` and body.
type Refusal = (u16, &'static str, &'static str);

/// The refusals of a bad request. A window that is used up and a delay of up to 5 s concern the key, as they say.
const REFUSALS: [Refusal; 18] = [
    (
        429,
        "",
        r#"{"error": {"message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 41210.", "code": "rate_limit_exceeded"}}"#,
    ),
    (413, "60", r#"{"error": {"message": "Payload too large"}}"#),
    (
        429,
        "60",
        r#"{"error": {"message": "The input or output tokens must be reduced", "type": "tokens"}}"#,
    ),
    (
        429,
        "",
        r#"{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}"#,
    ),
    (
        402,
        "",
        r#"{"error": {"message": "This request requires more credits, or fewer max_tokens", "code": 402}}"#,
    ),
    (403, "30", r#"{"error": {"message": "Your account is suspended"}}"#),
    (429, "", r#"{"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}"#),
    (429, "60", r#"{"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}"#),
    (429, "86400", r#"{"error": {"message": "Rate limit is exceeded.", "code": "429"}}"#),
    (
        429,
        "",
        r#"{"error": {"message": "Rate limit reached on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38s."}}"#,
    ),
    (429, "", r#"{"error": {"message": "Service tier capacity exceeded for this model."}}"#),
    (503, "600", r#"{"error": {"message": "Overloaded", "code": "server_is_overloaded"}}"#),
    (529, "", r#"{"error": {"message": "Overloaded", "type": "overloaded_error"}}"#),
    (500, "30", r#"{"error": {"message": "Internal error"}}"#),
    (
        200,
        "60",
        r#"{"choices": null, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}"#,
    ),
    (
        200,
        "",
        r#"{"choices": null, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}"#,
    ),
    (
        200,
        "",
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Slow\"}}\n\n",
    ),
    (
        200,
        "",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n",
    ),
];

#[derive(Debug, Clone)]
struct Case {
    /// What the attempts of the bad request are answered with, in turn.
    refusals: Vec<usize>,
    retries: u32,
    /// The milliseconds between two other requests, and before the bad one.
    pause: u64,
    before: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let refusals = prop::collection::vec(0..REFUSALS.len(), 1..4);
    (refusals, 0_u32..6, 10_u64..400, 0_u64..3_000)
        .prop_map(|(refusals, retries, pause, before)| Case { refusals, retries, pause, before })
}

/// Sends 40 requests one after the other, and a bad one beside them. Returns the time that the 40 took.
async fn time_of_others(case: &Case, is_bad: bool) -> Duration {
    let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
    let builder = builder.quota("gpt-4o", Quota::new().rpm(6_000));
    let limiter = builder.build().unwrap();
    let (refusals, number) = (case.refusals.clone(), Arc::new(Mutex::new(0)));
    let service = Strict::new(move |request: Request<String>| {
        let refusal = request.headers().contains_key("bad").then(|| {
            let mut number = number.lock();
            *number += 1;
            REFUSALS[refusals[(*number - 1) % refusals.len()]]
        });
        let (status, delay, body) = refusal.unwrap_or((200, "", USAGE));
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut response = Frames::from(body).into_response();
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            if !delay.is_empty() {
                response.headers_mut().insert("retry-after", delay.parse().unwrap());
            }
            Ok::<Response<Frames>, super::InnerError>(response)
        }
    });
    let client = RateLimitLayer::new(limiter.clone()).retry(case.retries).layer(service);
    let bad = client.clone();
    let before = Duration::from_millis(case.before);
    let bad = tokio::spawn(async move {
        if is_bad {
            tokio::time::sleep(before).await;
            let request = super::chat("gpt-4o").map(|body| body.replace("50", "60"));
            let (mut parts, body) = request.into_parts();
            parts.headers.insert("bad", "1".parse().unwrap());
            if let Ok(response) = bad.oneshot(Request::from_parts(parts, body)).await {
                drop(super::read(response).await);
            }
        }
    });
    let begin = limiter.now();
    for _ in 0..40 {
        let response = client.clone().oneshot(super::chat("gpt-4o")).await.unwrap();
        assert_eq!(response.status(), 200);
        super::read(response).await.unwrap();
        tokio::time::sleep(Duration::from_millis(case.pause)).await;
    }
    bad.abort();
    limiter.now() - begin
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn one_bad_request_delays_others_by_5_s_at_most(case in cases()) {
        crate::block_on_paused(async {
            let (with, without) = (time_of_others(&case, true).await, time_of_others(&case, false).await);
            assert!(with <= without + 5 * S, "{with:?} instead of {without:?}");
        });
    }
}
