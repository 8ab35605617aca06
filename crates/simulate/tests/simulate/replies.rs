//! Responses and refusals as JSON.

use std::time::Duration;

use paceline_simulate::{Fault, FaultKind, OutputSize, Provider, Settings, SimulatedReply};
use serde_json::json;

use super::{SECOND, chat, object, post};

#[test]
fn chat_reports_usage_and_choices() {
    let mut body = chat("What is the capital of France?");
    body["n"] = json!(2);
    body["metadata"] = json!({"output_tokens": 30});
    let reply = post(Settings::default(), "/v1/chat/completions", &body);
    let answer = object(&reply);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], "gpt-4o");
    assert_eq!(answer["choices"].as_array().map(Vec::len), Some(2));
    assert_eq!(answer["choices"][1]["finish_reason"], "stop");
    assert_eq!(answer["choices"][1]["message"]["content"].as_str().map(str::len), Some(120));
    assert_eq!(answer["usage"]["prompt_tokens"], 7);
    assert_eq!(answer["usage"]["completion_tokens"], 60);
    assert_eq!(answer["usage"]["total_tokens"], 67);
}

#[test]
fn endpoints_have_distinct_response_shapes() {
    let settings = || Settings::default().with_output(OutputSize::Fixed(5));
    let completion = post(settings(), "/completions", &json!({"model": "m", "prompt": "Say"}));
    assert_eq!(object(&completion)["object"], "text_completion");
    assert_eq!(object(&completion)["usage"]["completion_tokens"], 5);

    let body = json!({"model": "m", "input": ["one", "two"], "dimensions": 4});
    let embeddings = object(&post(settings(), "/v1/embeddings", &body));
    assert_eq!(embeddings["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(embeddings["data"][1]["embedding"], json!([0.5, 0.5, 0.5, 0.5]));
    assert_eq!(embeddings["usage"], json!({"prompt_tokens": 1, "total_tokens": 1}));
    let large = json!({"model": "text-embedding-3-large", "input": "one"});
    let vector = &object(&post(settings(), "/v1/embeddings", &large))["data"][0]["embedding"];
    assert_eq!(vector.as_array().map(Vec::len), Some(3_072));
    let body = json!({"model": "m", "input": "one", "dimensions": 4, "encoding_format": "base64"});
    let embeddings = object(&post(settings(), "/v1/embeddings", &body));
    assert_eq!(embeddings["data"][0]["embedding"], "AAAAPwAAAD8AAAA/AAAAPw==");

    let response = object(&post(settings(), "/v1/responses", &json!({"model": "m", "input": "x"})));
    assert_eq!(
        (&response["object"], &response["status"]),
        (&json!("response"), &json!("completed"))
    );
    assert_eq!(response["output"][0]["content"][0]["text"], "the fox may not eat ");
    assert_eq!(response["usage"]["output_tokens"], 5);
}

#[test]
fn input_token_count_is_free_and_matches_usage() {
    let mut provider = Provider::new(Settings::default().with_rpm(1));
    let body = json!({"model": "m", "input": "What is the capital of France?"}).to_string();
    let mut send = |path| provider.receive(0, path, body.as_bytes());
    let counts = ["/v1/responses/input_tokens"; 2].map(&mut send);
    assert!(counts.iter().all(|count| (count.status, count.charged) == (200, 0)));
    let response = send("/v1/responses");
    let stated = &object(&response)["usage"]["input_tokens"];
    assert_eq!(&object(&counts[0])["input_tokens"], stated);
    assert_eq!(send("/v1/responses").status, 429);
}

#[test]
fn same_model_name_has_separate_limits_per_format() {
    let mut provider = Provider::new(Settings::default().with_rpm(1));
    let openai = chat("Hello").to_string();
    let anthropic = json!({"model": "gpt-4o", "max_tokens": 5, "messages": ["Hi"]}).to_string();
    let gemini = json!({"contents": [{"parts": [{"text": "Hello"}]}]}).to_string();
    for status in [200, 429] {
        for (path, body) in [
            ("/v1/chat/completions", &openai),
            ("/v1/messages", &anthropic),
            ("/v1beta/models/gpt-4o:generateContent", &gemini),
        ] {
            assert_eq!(provider.receive(0, path, body.as_bytes()).status, status, "{path}");
        }
    }
    let stats = provider.stats();
    assert_eq!((stats.models["gpt-4o"].admitted, stats.models["gpt-4o"].refused), (3, 3));
}

#[test]
fn azure_paths_take_the_model_from_the_deployment() {
    for (path, model) in [
        ("/openai/v1/chat/completions", "gpt-4o"),
        ("/openai/deployments/mine/chat/completions?api-version=2024-10-21", "mine"),
    ] {
        let mut provider = Provider::new(Settings::default());
        let body = chat("Hello").to_string();
        assert_eq!(provider.receive(0, path, body.as_bytes()).status, 200, "{path}");
        assert_eq!(provider.stats().models.keys().collect::<Vec<_>>(), [model], "{path}");
    }
    for path in ["/openai/deployments/mine", "/openai/deployments//x", "/openai"] {
        assert_eq!(post(Settings::default(), path, &chat("Hello")).status, 404, "{path}");
    }
}

#[test]
fn output_is_capped_by_the_request() {
    let capped = |path, body| object(&post(Settings::default(), path, &body));
    let metadata = json!({"output_tokens": "900"});
    let mut body = chat("Hello");
    body["metadata"] = metadata.clone();
    body["max_completion_tokens"] = json!(10);
    let answer = capped("/v1/chat/completions", body);
    assert_eq!(answer["usage"]["completion_tokens"], 10);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let body = json!({"model": "m", "input": "x", "metadata": metadata, "max_output_tokens": 16});
    let answer = capped("/v1/responses", body);
    assert_eq!(answer["usage"]["output_tokens"], 16);
    assert_eq!(answer["status"], "incomplete");
}

#[test]
fn headers_report_remaining_and_reset() {
    let settings = Settings::default().with_rpm(500).with_tpm(30_000);
    let mut body = chat(&"x".repeat(4_000));
    body["max_tokens"] = json!(498);
    let reply = post(settings, "/v1/chat/completions", &body);
    assert_eq!(reply.charged, 1_500);
    let expected = [
        ("x-ratelimit-limit-requests", "500"),
        ("x-ratelimit-remaining-requests", "499"),
        ("x-ratelimit-reset-requests", "120ms"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", "28500"),
        ("x-ratelimit-reset-tokens", "3s"),
    ];
    for (name, value) in expected {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    assert!(reply.header("x-request-id").is_some_and(|id| id.starts_with("req_")));
    assert_eq!(reply.header("retry-after"), None);
}

/// Returns a provider of 10,000 TPM with 8,782 used, and its refusal of 8,172 more.
fn refused() -> (Provider, SimulatedReply, Vec<u8>) {
    let mut provider = Provider::new(Settings::default().with_tpm(10_000));
    provider.admit(0, "gpt-4o", 1, 8_782).expect("the request fits");
    let mut body = chat("Hello");
    body["max_tokens"] = json!(8_172 - 4);
    let body = body.to_string().into_bytes();
    let reply = provider.receive(0, "/v1/chat/completions", &body);
    (provider, reply, body)
}

#[test]
fn refusal_has_openai_shape() {
    let (_, reply, _) = refused();
    assert_eq!((reply.status, reply.charged), (429, 0));
    let error = &object(&reply)["error"];
    assert_eq!(
        error["message"],
        "Rate limit reached for gpt-4o in organization org-paceline on tokens per min (TPM): \
         Limit 10000, Used 8782, Requested 8172. Please try again in 41.724s. \
         Visit https://platform.openai.com/account/rate-limits to learn more."
    );
    assert_eq!((&error["type"], &error["code"]), (&json!("tokens"), &json!("rate_limit_exceeded")));
    assert_eq!(reply.header("retry-after-ms"), Some("41724"));
    assert_eq!(reply.header("retry-after"), Some("42"));
    assert_eq!(reply.header("x-ratelimit-remaining-tokens"), Some("1218"));
}

#[test]
fn request_is_admitted_exactly_after_retry_after() {
    let (mut provider, reply, body) = refused();
    let wait: u64 = reply.header("retry-after-ms").expect("a wait").parse().expect("a number");
    let mut at = |now| provider.receive(now, "/v1/chat/completions", &body).status;
    assert_eq!(at((wait - 1) * 1_000_000), 429);
    assert_eq!(at(wait * 1_000_000), 200);
}

#[test]
fn oversized_request_is_refused_without_retry_after() {
    let mut body = chat("Hello");
    body["max_tokens"] = json!(10_000);
    let reply = post(Settings::default().with_tpm(10_000), "/v1/chat/completions", &body);
    let message = object(&reply)["error"]["message"].to_string();
    assert_eq!(reply.status, 429);
    assert!(message.contains("Request too large for gpt-4o"), "{message}");
    assert!(message.contains("Limit 10000, Requested 10004."), "{message}");
    assert_eq!(reply.header("retry-after"), None);
}

#[test]
fn malformed_requests_are_refused_without_charge() {
    let mut provider = Provider::new(Settings::default().with_rpm(1));
    for (path, body, status, code) in [
        ("/v1/chat/completions", "{", 400, json!(null)),
        ("/v1/chat/completions", "[1]", 400, json!(null)),
        ("/v1/chat/completions", r#"{"messages": []}"#, 400, json!(null)),
        ("/v1/chat/completions", r#"{"model": "m"}"#, 400, json!("missing_required_parameter")),
        ("/v1/responses", r#"{"model": "m"}"#, 400, json!("missing_required_parameter")),
        ("/completions", r#"{"model": "m", "max_tokens": -1}"#, 400, json!("invalid_type")),
        ("/completions", r#"{"model": "m", "n": 129}"#, 400, json!("invalid_type")),
        ("/v1/elsewhere", "{}", 404, json!(null)),
    ] {
        let reply = provider.receive(0, path, body.as_bytes());
        assert_eq!((reply.status, &object(&reply)["error"]["code"]), (status, &code), "{body}");
        assert_eq!(object(&reply)["error"]["type"], "invalid_request_error");
    }
    let stats = provider.stats();
    assert_eq!((stats.total.received, stats.total.failed, stats.total.admitted), (8, 8, 0));
    let reply = provider.receive(0, "/v1/chat/completions", chat("Hi").to_string().as_bytes());
    assert_eq!(reply.status, 200);
}

#[test]
fn enormous_numbers_do_not_panic() {
    let mut body = chat("Hello");
    body["max_tokens"] = json!(u64::MAX);
    body["n"] = json!(2);
    body["metadata"] = json!({"output_tokens": u64::MAX});
    let reply = post(Settings::default(), "/v1/chat/completions", &body);
    assert_eq!((reply.status, reply.charged), (200, u64::MAX));
    assert_eq!(reply.usage.output, 256_000);
}

#[test]
fn faults_occur_periodically_without_charge() {
    let settings = Settings::default()
        .with_rpm(4)
        .with_fault(Fault::every(3, FaultKind::Overloaded))
        .with_fault(Fault::every(2, FaultKind::InsufficientQuota));
    let mut provider = Provider::new(settings);
    let body = chat("Hello").to_string();
    let mut next = || provider.receive(0, "/v1/chat/completions", body.as_bytes());
    let replies: Vec<SimulatedReply> = (0..6).map(|_| next()).collect();
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [200, 429, 503, 429, 200, 503]);
    assert_eq!(object(&replies[1])["error"]["code"], "insufficient_quota");
    assert_eq!(provider.stats().total.admitted, 2);
}

#[test]
fn share_of_requests_fails_at_random() {
    let settings = |kind| Settings::default().with_fault(Fault::share(0.2, kind));
    let refused = |kind, body: &dyn Fn(u64) -> String| -> Vec<bool> {
        let mut provider = Provider::new(settings(kind));
        let mut is_refused =
            |nth| provider.receive(0, "/v1/chat/completions", body(nth).as_bytes()).status == 429;
        (0..1_000).map(&mut is_refused).collect()
    };
    let count = |refused: Vec<bool>| refused.into_iter().filter(|refused| *refused).count();
    let same = |_| chat("Hello").to_string();
    let other = |nth| chat(&format!("Hello {nth}")).to_string();
    assert!((150..250).contains(&count(refused(FaultKind::RateLimited, &same))));
    assert!((150..250).contains(&count(refused(FaultKind::TooLarge, &other))));
    // Whenever it is sent.
    assert!([0, 1_000].contains(&count(refused(FaultKind::TooLarge, &same))));
}

#[test]
fn same_seed_gives_same_replies() {
    let run = |seed| {
        let settings = Settings::default()
            .with_tpm(90)
            .with_seed(seed)
            .with_output(OutputSize::LogUniform(1, 1_000))
            .with_latency(Duration::from_millis(20), Duration::from_millis(900));
        let mut provider = Provider::new(settings);
        let bodies = (0..20).map(|i| chat(&format!("question {i}")).to_string());
        let reply = |(i, body): (u64, String)| {
            provider.receive(i * SECOND, "/v1/chat/completions", body.as_bytes())
        };
        (0..).zip(bodies).map(reply).collect::<Vec<SimulatedReply>>()
    };
    let replies = run(1);
    assert_eq!(replies, run(1));
    assert_ne!(replies, run(2));
    let admitted = || replies.iter().filter(|reply| reply.status == 200);
    assert!(admitted().all(|r| (1..=1_000).contains(&r.usage.output)));
    assert!(admitted().all(|r| (20..=900).contains(&r.latency.as_millis())));
    assert!(admitted().any(|r| r.usage != replies[0].usage));
}
