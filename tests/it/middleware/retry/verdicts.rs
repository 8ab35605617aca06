//! Which answers are worth another try.

use http::{Response, StatusCode};
use tollgate::middleware::{Http, Journey, RateLimitLayer};
use tollgate::provider::OPENAI;
use tower::{Service, ServiceExt};

use super::super::chat;
use super::super::inner::{Frames, Oops, Strict};
use super::{LIMITED, Script, answer, ok, refused, roomy};

/// Which status comes out, and when the tries were sent, in whole seconds.
async fn seconds(first: Response<Frames>, retries: u32) -> (u16, Vec<u64>) {
    let (status, at) = sent(first, retries).await;
    (status, at.into_iter().map(|at| at / 1_000).collect())
}

/// The same, in milliseconds.
async fn sent(first: Response<Frames>, retries: u32) -> (u16, Vec<u64>) {
    let limiter = roomy();
    let script = Script::new(&limiter, [first, ok()]);
    let client = script.client(&RateLimitLayer::new(limiter).retry(retries));
    let response = client.oneshot(chat("gpt-4o")).await.unwrap();
    (response.status().as_u16(), script.asked())
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_sent_again_when_the_provider_says() {
    assert_eq!(seconds(refused("7"), 1).await, (200, vec![0, 7]));
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_only_the_body_of_a_refusal_names_counts_too() {
    let body = r#"{"error": {"message": "Rate limit reached. Please try again in 20s.",
        "type": "tokens", "code": "rate_limit_exceeded"}}"#;
    assert_eq!(seconds(answer(429, &[], body.into()), 1).await, (200, vec![0, 20]));
}

#[tokio::test(start_paused = true)]
async fn what_fails_in_passing_without_a_delay_is_sent_again_after_a_back_off() {
    for status in [408, 409, 425, 500, 502, 503, 504, 529] {
        let (came, at) = sent(answer(status, &[], "oh".into()), 1).await;
        assert_eq!((came, at.len()), (200, 2), "{status}");
        // A refusal holds the key for a second; a back-off is half a second, less up to a quarter.
        let refusal = matches!(status, 503 | 529);
        let (least, most) = if refusal { (1_000, 2_000) } else { (375, 501) };
        assert!((least..most).contains(&at[1]), "{status}: {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_of_nothing_is_a_back_off() {
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
        let named = format!("{first:?}");
        let (status, at) = sent(first, 1).await;
        assert!(status == 200 && at[1] >= 375, "{named}: {at:?}");
    }
    let limiter = roomy();
    let event = format!("data: {text}\n\n");
    let script = Script::new(&limiter, [answer(200, STREAM, Frames::default().data(event)), ok()]);
    let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(1);
    script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
    assert!(script.asked()[1] >= 375, "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn a_delay_of_a_failure_holds_that_request_alone() {
    let limiter = roomy();
    let failed = answer(500, &[("retry-after", "9")], "oh".into());
    let script = Script::new(&limiter, [failed, ok(), ok()]);
    let mut client = script.client(&RateLimitLayer::new(limiter).retry(1));
    let first = tokio::spawn(client.ready().await.unwrap().call(chat("gpt-4o")));
    super::super::settle_down().await;
    client.oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    assert_eq!(script.asked(), [0, 0, 9_000]);
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_no_sdk_would_believe_is_a_back_off() {
    let failed = answer(500, &[("retry-after", "3600")], "oh".into());
    let (status, at) = sent(failed, 1).await;
    assert!(status == 200 && at[1] <= 500, "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn what_would_fail_again_is_not_sent_again() {
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
    let asked = answer(404, &[("x-should-retry", "true")], "no".into());
    assert_eq!(sent(asked, 3).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_a_day_is_waited_for_only_where_it_is_known_for_how_long() {
    let day = r#"{"error": {"message": "Rate limit reached on requests per day (RPD): Limit 200.",
        "type": "requests", "code": "rate_limit_exceeded"}}"#;
    assert_eq!(sent(answer(429, &[], day.into()), 3).await, (429, vec![0]));
    let told = answer(429, &[("retry-after", "432")], day.into());
    assert_eq!(seconds(told, 3).await, (200, vec![0, 432]));
}

#[tokio::test(start_paused = true)]
async fn after_the_last_try_its_answer_is_the_callers() {
    assert_eq!(sent(refused("7"), 0).await, (429, vec![0]));
    let limiter = roomy();
    let answers = [refused("1"), answer(500, &[], "one".into()), answer(502, &[], "two".into())];
    let script = Script::new(&limiter, answers);
    let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(2));
    let response = client.oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!((response.status(), script.asked().len()), (StatusCode::BAD_GATEWAY, 3));
    assert_eq!(super::super::read(response).await.unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn every_try_is_the_same_request_charged_by_itself_and_told_to_the_journey() {
    let limiter = roomy();
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
    let earlier: Vec<_> = facts.earlier.iter().filter_map(|try_| try_.status).collect();
    assert_eq!(earlier, [StatusCode::TOO_MANY_REQUESTS, StatusCode::INTERNAL_SERVER_ERROR]);
    assert!(facts.earlier.iter().all(|one| one.charged.is_some() && one.usage.is_none()));
    assert_eq!(facts.usage.map(|usage| usage.output), Some(9));
}

/// An error that says that nothing left, as another layer of ours does.
#[tokio::test(start_paused = true)]
async fn what_never_left_is_sent_again_and_what_may_have_left_is_not() {
    let limiter = roomy();
    let script = Script::of(&limiter, [Err(Oops), Ok(ok())]);
    let client = script.client(&RateLimitLayer::new(limiter.clone()).retry(3));
    client.oneshot(chat("gpt-4o")).await.unwrap_err();
    assert_eq!(script.asked(), [0]);

    let inner = super::super::builder().quota("i", tollgate::Quota::new().rpm(1)).build().unwrap();
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
    let asked = script.asked();
    assert!((60_000..69_000).contains(&asked[1]), "{asked:?}");
    let facts = journey.facts();
    assert!(facts.earlier.len() > 8 && facts.charged.is_some(), "{facts:?}");
    assert!(facts.earlier.iter().all(|one| one.charged.is_none()), "it is charged nothing");
}

const STREAM: &[(&str, &str)] = &[("content-type", "text/event-stream")];

#[tokio::test(start_paused = true)]
async fn a_success_that_has_begun_is_passed_on_and_a_whole_one_is_judged_by_its_error() {
    let event = "data: {\"error\": {\"code\": \"server_error\", \"message\": \"Sorry\"}}\n\n";
    let layer = |limiter| RateLimitLayer::new(limiter).retry(1);
    let limiter = roomy();
    let script = Script::new(&limiter, [answer(200, STREAM, event.into())]);
    let response = script.client(&layer(limiter)).oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(super::super::read(response).await.unwrap(), event);

    let limiter = roomy();
    let broken = answer(200, &[], Frames::from("{").error());
    let wrong = "data: {\"error\": {\"code\": \"invalid_prompt\", \"message\": \"No\"}}\n\n";
    let answers = [answer(200, STREAM, event.into()), broken, answer(200, STREAM, wrong.into())];
    let script = Script::new(&limiter, answers);
    let layer = layer(limiter).retry(9).observe(Http::new(OPENAI).whole());
    let response = script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(super::super::read(response).await.unwrap(), wrong);
    assert_eq!(script.asked().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_whole_success_that_answers_nothing_is_sent_again() {
    let limiter = roomy();
    let bodies = ["", "<html>Sign in</html>", "{\"choices\": [", "null", "{}"];
    let cut = "data: {\"choices\": [{\"delta\": {}}]}\n\n";
    let answers = bodies.map(|body| answer(200, &[], body.into())).into_iter();
    let answers: Vec<_> = answers.chain([answer(200, STREAM, cut.into()), ok()]).collect();
    let script = Script::new(&limiter, answers);
    let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(9);
    let response = script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(super::super::read(response).await.unwrap(), super::super::USAGE);
    assert_eq!(script.asked().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_reads_whole_answers_does_so_for_another_provider_too() {
    let limiter = roomy();
    let broken = answer(200, &[], Frames::from("{").error());
    let script = Script::new(&limiter, [broken, ok()]);
    let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(1);
    let layer = layer.provider(tollgate::provider::GROQ);
    script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_breaks_off_is_judged_as_any_other() {
    for (status, tries) in [(401, 1), (400, 1), (500, 2)] {
        let limiter = roomy();
        let broken = answer(status, &[], Frames::from("{").error());
        let script = Script::new(&limiter, [broken, ok()]);
        let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(3);
        script.client(&layer).oneshot(chat("gpt-4o")).await.unwrap();
        assert_eq!(script.asked().len(), tries, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn back_offs_grow() {
    let limiter = roomy();
    let failed = || answer(500, &[], "oh".into());
    let script = Script::new(&limiter, [failed(), failed(), failed(), failed(), ok()]);
    let client = script.client(&RateLimitLayer::new(limiter).retry(4));
    client.oneshot(chat("gpt-4o")).await.unwrap();
    let asked = script.asked();
    let waits: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, whole) in waits.iter().zip([500, 1_000, 2_000, 4_000]) {
        assert!((whole * 3 / 4..=whole + 1).contains(wait), "{waits:?}");
    }
}
