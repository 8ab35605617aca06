//! Upstreams that refuse: each kind of refusal stops only what it speaks of.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::rig::{Proxy, TestUpstream, json};

/// Returns the reported answer of this name: its status, header fields and body.
fn reported(name: &str) -> (String, String, String) {
    let rows = include_str!("../../../../provider/tests/data/refusals.jsonl").lines();
    let rows = rows.map(|row| serde_json::from_str::<Value>(row).unwrap());
    let row = rows.into_iter().find(|row| row["name"] == name).unwrap();
    let headers = row["headers"].as_object().unwrap().iter();
    let fields = headers.map(|(name, value)| format!("{name}: {}\r\n", value.as_str().unwrap()));
    let body = row["body"].as_str().unwrap().to_owned();
    (format!("{} Refused", row["status"]), fields.collect(), body)
}

/// Answers all requests: those to `refused`, or all if it is empty, with the reported answer, others with a 200. Returns
/// the number of requests so far.
fn answer(mut up: TestUpstream, refused: &'static str, name: &str) -> Arc<AtomicUsize> {
    let (status, fields, body) = reported(name);
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    tokio::spawn(async move {
        loop {
            let request = up.request().await;
            count.fetch_add(1, Ordering::Relaxed);
            match String::from_utf8_lossy(&request.body).contains(refused) {
                true => request.answer(&status, &fields, &body).await,
                false => request.answer("200 OK", "", "{}").await,
            }
        }
    });
    received
}

async fn send(proxy: &Proxy, text: &str) -> reqwest::Response {
    let body = format!(r#"{{"model":"gpt-4o","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    proxy.chat("gpt-4o").body(body).send().await.unwrap()
}

/// B is larger than the deployment's limit; Azure states a day for it.
#[tokio::test]
async fn stray_delay_of_a_day_closes_no_deployment() {
    for retry in ["", "retry: {attempts: 2}"] {
        let up = TestUpstream::start().await;
        let (addr, proxied) = (up.addr, answer(up, "too long", "az-86400"));
        let quotas = format!("quotas: {{gpt-4o: {{rpm: 6000}}}}\n{retry}");
        let proxy = Proxy::with(&[("up", addr, "azure")], "", &quotas).await;
        assert_eq!(send(&proxy, "a").await.status(), 200);
        let others = async { (send(&proxy, "c").await.status(), send(&proxy, "d").await.status()) };
        let all = async { tokio::join!(send(&proxy, "too long"), others) };
        let (b, (c, d)) = tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
        assert_eq!(
            (b.status(), c, d),
            (429.try_into().unwrap(), 200.try_into().unwrap(), 200.try_into().unwrap())
        );
        assert!(json(b).await["error"]["message"].as_str().unwrap().contains("86400"));
        assert!((4..=5).contains(&proxied.load(Ordering::Relaxed)));
    }
}

/// B can never fit: its answer is passed on at once, and nobody else waits.
#[tokio::test]
async fn request_that_never_fits_is_refused_alone() {
    let up = TestUpstream::start().await;
    let (addr, proxied) = (up.addr, answer(up, "too long", "oai-too-large"));
    let more = "quotas: {gpt-4o: {rpm: 6000}}\nretry: {attempts: 3}";
    let (proxy, _clock) = Proxy::timed(addr, "openai", "mode: reject", more).await;
    let begin = proxy.limiter.now();
    for (text, status) in [("a", 200), ("too long", 429), ("c", 200), ("too long", 429), ("d", 200)]
    {
        let response = send(&proxy, text).await;
        assert_eq!(response.status(), status, "{text}");
        if status == 429 {
            let message = json(response).await["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with("Request too large for gpt-4o"), "{message}");
        }
    }
    assert_eq!((proxied.load(Ordering::Relaxed), proxy.limiter.now()), (5, begin));
}

/// Gemini states a short delay beside a daily quota, which counts until midnight in California.
#[tokio::test]
async fn daily_quota_with_short_delay_pauses_until_its_reset() {
    let mut up = TestUpstream::start().await;
    let path = "/up/v1beta/models/gemini-2.5-flash:generateContent";
    let quotas = "quotas: {gemini-2.5-flash: {rpm: 600}}\nretry: {attempts: 3}";
    let (proxy, clock) = Proxy::timed(up.addr, "gemini", "mode: reject", quotas).await;
    let send = || {
        let body = r#"{"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}"#;
        tokio::spawn(proxy.post(path, body).send())
    };
    let (status, fields, body) = reported("gem-perday-short");
    let sent = send();
    up.request().await.answer(&status, &fields, &body).await;
    assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), body);
    let refused = send().await.unwrap().unwrap();
    assert_eq!(refused.status(), 429);
    let stated: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    let since_midnight = (proxy.limiter.now().as_nanos() / 1_000_000_000 + stated) % 86_400;
    assert!([7, 8].map(|hours| hours * 3_600).iter().any(|at| since_midnight.abs_diff(*at) <= 1));
    assert!(up.is_idle());
    clock.advance(Duration::from_secs(stated));
    let sent = send();
    up.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn refused_account_is_answered_in_the_providers_words() {
    for (provider, name, words, kind) in [
        ("openai", "oai-insuff", "You exceeded your current quota", "insufficient_quota"),
        ("anthropic", "ant-400-credit", "Your credit balance is too low", "invalid_request_error"),
    ] {
        let up = TestUpstream::start().await;
        let (addr, received) = (up.addr, answer(up, "", name));
        let more = "quotas: {gpt-4o: {rpm: 6000}}\nretry: {attempts: 3}";
        let proxy = Proxy::with(&[("up", addr, provider)], "", more).await;
        let mut statuses = Vec::new();
        for _ in 0..10 {
            statuses.push(send(&proxy, "hi").await.status());
        }
        assert!(statuses.iter().all(|status| *status == statuses[0]), "{statuses:?}");
        assert_eq!(received.load(Ordering::Relaxed), 3, "{name}");
        let response = send(&proxy, "hi").await;
        assert_eq!(response.headers()["x-should-retry"], "false");
        let problem = json(response).await;
        assert_eq!(
            (&problem["code"], &problem["error"]["type"]),
            (&"account_refused".into(), &kind.into())
        );
        assert!(problem["error"]["message"].as_str().unwrap().starts_with(words), "{problem}");
    }
}

#[tokio::test]
async fn attempts_of_a_request_are_bounded() {
    let up = TestUpstream::start().await;
    let (addr, received) = (up.addr, answer(up, "", "mis-1300"));
    let proxy = Proxy::to(addr, "retry: {attempts: 2}").await;
    assert_eq!(send(&proxy, "hi").await.status(), 429);
    assert_eq!(received.load(Ordering::Relaxed), 2);
}

/// A subscription's window, without a quota that names a utilization.
#[tokio::test]
async fn used_up_subscription_pauses_until_its_window_starts() {
    let body = reported("codex-usage").2;
    let plain = r#"{"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached"}}"#;
    let header = "x-codex-primary-reset-after-seconds: 7200\r\n";
    let used = format!("{header}x-codex-primary-used-percent: 100\r\n");
    let half = format!("{header}x-codex-primary-used-percent: 50\r\n");
    let hour = r#"{"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached", "resets_in_seconds": 3600}}"#;
    // The recording's `resets_at` is `resets_in_seconds` later.
    let date = "date: Sat, 28 Mar 2026 16:20:26 GMT\r\n";
    for (fields, body, seconds) in [
        (date, &*body, 602_705),
        (header, plain, 7_200),
        (&*used, plain, 7_200),
        (&*half, hour, 3_600),
        (&*format!("{used}{date}"), &*body, 602_705),
    ] {
        let mut up = TestUpstream::start().await;
        let quotas = "quotas: {gpt-5.3-codex: {rpm: 600}}\nretry: {attempts: 3}";
        let (proxy, clock) = Proxy::timed(up.addr, "openai", "mode: reject", quotas).await;
        let send = || {
            let body = r#"{"model": "gpt-5.3-codex", "input": "Hello", "stream": true}"#;
            tokio::spawn(proxy.post("/up/backend-api/codex/responses", body).send())
        };
        let sent = send();
        up.request().await.answer("429 Too Many Requests", fields, body).await;
        assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), body);
        let refused = send().await.unwrap().unwrap();
        assert_eq!(refused.status(), 429, "{fields}{body}");
        let stated: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((seconds..=seconds + 1).contains(&stated), "{stated}: {fields}{body}");
        assert!(up.is_idle());
        clock.advance(Duration::from_secs(stated));
        let sent = send();
        up.request().await.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
}

/// Sends a request and answers it with a 200, if the proxy sends it.
async fn exchange(
    request: reqwest::RequestBuilder,
    up: &mut TestUpstream,
    fields: &str,
    body: &str,
) -> reqwest::Response {
    let mut sent = tokio::spawn(request.send());
    tokio::select! {
        request = up.request() => request.answer("200 OK", fields, body).await,
        refused = &mut sent => return refused.unwrap().unwrap(),
    }
    sent.await.unwrap().unwrap()
}

const STREAM: &str = "content-type: text/event-stream\r\n";

#[tokio::test]
async fn error_of_minimax_in_a_200_acts_as_its_status() {
    let ok = r#"{"choices": [{"delta": {"content": "Hi"}}], "base_resp": {"status_code": 0, "status_msg": ""}, "usage": {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37}}"#;
    for is_stream in [false, true] {
        let mut up = TestUpstream::start().await;
        let quotas = "quotas: {m: {tpd: 1000, rpd: 100}}";
        let (proxy, clock) = Proxy::timed(up.addr, "minimax", "mode: reject", quotas).await;
        let mut answered = async |body: &str| {
            // The pace after a refusal is that of a limit per day.
            clock.advance(Duration::from_secs(3_600));
            let (fields, body) = match is_stream {
                true => (STREAM, format!("data: {body}\n\n")),
                false => ("content-type: application/json\r\n", body.to_owned()),
            };
            let response = exchange(proxy.chat("m"), &mut up, fields, &body).await;
            assert_eq!(response.text().await.unwrap(), body);
            proxy.all_used("m")
        };
        assert_eq!(answered(ok).await, [1, 37]);
        // A rate: the key pauses, and no token is charged.
        assert_eq!(answered(&reported("mmx-1002").2).await, [2, 37]);
        let refused = json(proxy.chat("m").send().await.unwrap()).await;
        assert_eq!(refused["code"], "cooling_down", "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        let cause =
            "m: cooling down after the provider's refusal: too many requests or tokens at once";
        assert!(message.contains(cause), "{message}");
        // No money: after three the proxy answers.
        for requests in 3..6 {
            assert_eq!(answered(&reported("mmx-1008").2).await, [requests, 37]);
        }
        let refused = json(proxy.chat("m").send().await.unwrap()).await;
        assert_eq!(refused["code"], "account_refused", "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().starts_with("insufficient balance"));
    }
}

#[tokio::test]
async fn stream_that_begins_with_an_error_is_retried_unseen() {
    let error = |kind: &str| {
        let error = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"Sorry"}}}}"#);
        format!("event: error\ndata: {error}\n\n")
    };
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
    for (kind, tries) in
        [("overloaded_error", 2), ("rate_limit_error", 2), ("invalid_request_error", 1)]
    {
        let mut up = TestUpstream::start().await;
        let proxy = Proxy::with(&[("up", up.addr, "anthropic")], "", "retry: {attempts: 3}").await;
        let body = r#"{"model": "m", "max_tokens": 50, "stream": true, "messages": []}"#;
        let sent = tokio::spawn(proxy.post("/up/v1/messages", body).send());
        up.request().await.answer("200 OK", STREAM, &error(kind)).await;
        let expected = if tries == 1 { error(kind) } else { start.to_owned() };
        if tries > 1 {
            up.request().await.answer("200 OK", STREAM, start).await;
        }
        let response = sent.await.unwrap().unwrap();
        assert_eq!((response.status().as_u16(), response.text().await.unwrap()), (200, expected));
        assert!(up.is_idle());
    }
    // After an event has been passed on, nothing is sent again.
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::with(&[("up", up.addr, "anthropic")], "", "retry: {attempts: 3}").await;
    let body = r#"{"model": "m", "max_tokens": 50, "stream": true, "messages": []}"#;
    let sent = tokio::spawn(proxy.post("/up/v1/messages", body).send());
    let stream = start.to_owned() + &error("overloaded_error");
    up.request().await.answer("200 OK", STREAM, &stream).await;
    assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), stream);
    assert!(up.is_idle());
}
