//! Gemini's format: methods, streams, limits and errors.

use paceline_simulate::{Fault, FaultKind, OutputSize, Provider, Settings, SimulatedReply};
use serde_json::{Value, json};

use super::{SECOND, events, object, post};

const GENERATE: &str = "/v1beta/models/gemini-2.5-flash:generateContent";
const STREAM: &str = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";

fn request(text: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": text}]}]})
}

fn output(tokens: u64) -> Settings {
    Settings::default().with_output(OutputSize::Fixed(tokens))
}

fn send(provider: &mut Provider, now: u64, text: &str) -> SimulatedReply {
    provider.receive(now, GENERATE, request(text).to_string().as_bytes())
}

#[test]
fn response_reports_usage_and_model() {
    let reply = post(output(12), GENERATE, &request("What is the capital of France?"));
    let answer = object(&reply);
    assert_eq!(reply.header("content-type"), Some("application/json; charset=UTF-8"));
    assert_eq!(
        answer["candidates"][0]["content"]["parts"][0]["text"].as_str().map(str::len),
        Some(48)
    );
    assert_eq!(answer["candidates"][0]["finishReason"], "STOP");
    assert_eq!(answer["modelVersion"], "gemini-2.5-flash");
    let usage = &answer["usageMetadata"];
    assert_eq!(usage["promptTokenCount"], reply.usage.input);
    assert_eq!(usage["candidatesTokenCount"], 12);
    assert_eq!(usage["totalTokenCount"], reply.usage.input + 12);

    let mut body = request("Hello");
    body["generationConfig"] = json!({"maxOutputTokens": 5, "candidateCount": 2});
    let reply = post(output(12), GENERATE, &body);
    let answer = object(&reply);
    assert_eq!(answer["candidates"][1]["finishReason"], "MAX_TOKENS");
    assert_eq!(
        (reply.usage.output, &answer["usageMetadata"]["candidatesTokenCount"]),
        (10, &json!(10))
    );
}

#[test]
fn stream_is_sse_or_equivalent_json_array() {
    let streamed = post(output(20), &format!("{STREAM}?alt=sse"), &request("Hello"));
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
    let chunks: Vec<Value> = events(&streamed).into_iter().map(|(_, data)| data).collect();
    let array = post(output(20), STREAM, &request("Hello"));
    assert_eq!(array.header("content-type"), Some("application/json; charset=UTF-8"));
    assert_eq!(object(&array), Value::Array(chunks.clone()));

    let text = chunks.iter().map(|chunk| &chunk["candidates"][0]["content"]["parts"][0]["text"]);
    assert_eq!(text.filter_map(Value::as_str).map(str::len).sum::<usize>(), 80);
    let (last, before) = chunks.split_last().expect("a last chunk");
    assert!(before.iter().all(|chunk| chunk["usageMetadata"]["candidatesTokenCount"].is_null()));
    assert!(
        before
            .iter()
            .all(|chunk| chunk["usageMetadata"]["promptTokenCount"] == streamed.usage.input)
    );
    assert_eq!(last["usageMetadata"]["candidatesTokenCount"], 20);
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
}

#[test]
fn token_limit_counts_input_only() {
    let reply = post(output(5_000).with_tpm(100), GENERATE, &request("Hello there"));
    assert_eq!((reply.status, reply.charged), (200, reply.usage.input));
    assert!(reply.usage.input < 10);
    let names: Vec<&str> = reply.headers.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["content-type"], "no limit headers");
}

#[test]
fn refusal_reports_quota_and_retry_delay() {
    let mut provider = Provider::new(output(5).with_rpm(7));
    for _ in 0..7 {
        assert_eq!(send(&mut provider, 0, "Hello").status, 200);
    }
    let reply = send(&mut provider, 0, "Hello");
    let error = &object(&reply)["error"];
    assert_eq!((reply.status, reply.header("retry-after")), (429, None));
    assert_eq!((&error["code"], &error["status"]), (&json!(429), &json!("RESOURCE_EXHAUSTED")));
    assert!(
        error["message"].as_str().is_some_and(|m| m.contains("Please retry in 8.571428572s.")),
        "{error}"
    );
    let violation = &error["details"][1]["violations"][0];
    assert_eq!(violation["quotaId"], "GenerateRequestsPerMinutePerProjectPerModel");
    assert_eq!(
        (&violation["quotaValue"], &violation["quotaDimensions"]["model"]),
        (&json!("7"), &json!("gemini-2.5-flash"))
    );
    assert_eq!(error["details"][2]["@type"], "type.googleapis.com/google.rpc.RetryInfo");
    assert_eq!(error["details"][2]["retryDelay"], "8.571428572s");
    assert_eq!(send(&mut provider, 8_571_428_571, "Hello").status, 429);
    assert_eq!(send(&mut provider, 8_571_428_572, "Hello").status, 200);
}

#[test]
fn day_ends_at_midnight_in_los_angeles() {
    // 2026-11-21 17:00 UTC is 9:00 in Los Angeles.
    let now = 1_795_280_400 * SECOND;
    let mut provider = Provider::new(output(5).with_rpd(1));
    assert_eq!(send(&mut provider, now, "Hello").status, 200);
    let error = object(&send(&mut provider, now, "Hello"));
    let details = &error["error"]["details"];
    assert_eq!(details[1]["violations"][0]["quotaId"], "GenerateRequestsPerDayPerProjectPerModel");
    assert_eq!(details[2]["retryDelay"], "54000s");
    assert_eq!(send(&mut provider, now + 54_000 * SECOND - 1, "Hello").status, 429);
    assert_eq!(send(&mut provider, now + 54_000 * SECOND, "Hello").status, 200);
}

#[test]
fn array_stream_errors_are_arrays() {
    let full = || output(5).with_tpm(1);
    let body = request("What is the capital of France?");
    assert_eq!(object(&post(full(), STREAM, &body))[0]["error"]["code"], 429);
    assert_eq!(object(&post(full(), &format!("{STREAM}?alt=sse"), &body))["error"]["code"], 429);
    assert_eq!(object(&post(full(), GENERATE, &body))["error"]["code"], 429);
}

#[test]
fn token_count_is_free_and_matches_usage() {
    let mut provider = Provider::new(output(5).with_rpm(1));
    let path = "/v1beta/models/gemini-2.5-flash:countTokens";
    let plain = request("Hello there");
    let whole = json!({"generateContentRequest": plain});
    let mut counted = || {
        [&plain, &whole].map(|body| object(&provider.receive(0, path, body.to_string().as_bytes())))
    };
    let counts = counted();
    assert_eq!(counts[0], counts[1]);
    assert_eq!(counts[0]["totalTokens"], send(&mut provider, 0, "Hello there").usage.input);
    assert_eq!(send(&mut provider, 0, "Hello there").status, 429);
}

#[test]
fn single_and_batch_texts_are_embedded() {
    let content = json!({"parts": [{"text": "one"}]});
    let one = json!({"content": content, "outputDimensionality": 4});
    let one = post(output(5), "/v1beta/models/m:embedContent", &one);
    assert_eq!(object(&one)["embedding"]["values"], json!([0.5, 0.5, 0.5, 0.5]));
    assert_eq!(one.usage.output, 0);
    let requests = vec![json!({"content": content}); 3];
    let many =
        post(output(5), "/v1beta/models/m:batchEmbedContents", &json!({"requests": requests}));
    let vectors = &object(&many)["embeddings"];
    assert_eq!(vectors.as_array().map(Vec::len), Some(3));
    assert_eq!(vectors[2]["values"].as_array().map(Vec::len), Some(3_072));
    assert_eq!(many.usage.input, 3 * one.usage.input);
}

#[test]
fn vertex_paths_and_tools_are_read_too() {
    let path =
        "/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro:generateContent";
    let mut body = request("Hello");
    body["systemInstruction"] =
        json!({"parts": [{"text": "Be brief."}, {"inlineData": {"data": "AAAA"}}]});
    body["tools"] = json!([{"functionDeclarations": [{"name": "look_up"}]}]);
    let reply = post(output(5), path, &body);
    assert_eq!((reply.status, &object(&reply)["modelVersion"]), (200, &json!("gemini-2.5-pro")));
    assert!(reply.usage.input > 258);
}

#[test]
fn malformed_requests_and_faults_use_gemini_errors() {
    for (path, body, status, kind) in [
        (GENERATE, "{", 400, "INVALID_ARGUMENT"),
        (GENERATE, "{}", 400, "INVALID_ARGUMENT"),
        (GENERATE, r#"{"contents": []}"#, 400, "INVALID_ARGUMENT"),
        ("/v1beta/models/m:unheardOf", "{}", 404, "NOT_FOUND"),
        ("/v1beta/elsewhere", "{}", 404, "NOT_FOUND"),
    ] {
        let reply = Provider::new(Settings::default()).receive(0, path, body.as_bytes());
        assert_eq!(
            (reply.status, &object(&reply)["error"]["status"]),
            (status, &json!(kind)),
            "{path} {body}"
        );
    }
    for (kind, status, error) in [
        (FaultKind::ServerError, 500, "INTERNAL"),
        (FaultKind::Overloaded, 503, "UNAVAILABLE"),
        (FaultKind::Unauthorized, 400, "INVALID_ARGUMENT"),
        (FaultKind::InsufficientQuota, 429, "RESOURCE_EXHAUSTED"),
    ] {
        let settings = Settings::default().with_fault(Fault::every(1, kind));
        let reply = post(settings, GENERATE, &request("Hello"));
        assert_eq!((reply.status, &object(&reply)["error"]["status"]), (status, &json!(error)));
    }
}

#[test]
fn content_without_parts_is_refused() {
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}, {"role": "model", "parts": []}]});
    let reply = post(Settings::default(), "/v1beta/models/m:generateContent", &body);
    let message = object(&reply)["error"]["message"].clone();
    let expected =
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n";
    assert_eq!((reply.status, message), (400, json!(expected)));
}
