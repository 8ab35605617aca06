//! Structured answers: JSON that the schema of the request allows.

use paceline_simulate::{Settings, SimulatedReply};
use serde_json::{Value, json};

use super::{chat, events, object, post};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GENERATE: &str = "/v1beta/models/gemini-2.5-flash:generateContent";

fn schema() -> Value {
    let properties = json!({"city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}});
    json!({"type": "object", "properties": properties, "required": ["city", "days"]})
}

const ANSWER: &str = r#"{"city":"the","days":2}"#;

fn chat_request(format: &Value) -> Value {
    let mut body = chat("Hello");
    body["response_format"] = format.clone();
    body
}

fn of_schema() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "trip", "schema": schema()}})
}

fn send(path: &str, body: &Value) -> SimulatedReply {
    post(Settings::default(), path, body)
}

#[test]
fn answers_are_values_of_the_schema_in_every_format() {
    let reply = send(CHAT, &chat_request(&of_schema()));
    let answer = object(&reply);
    assert_eq!(answer["choices"][0]["message"]["content"], ANSWER);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(reply.usage.output, ANSWER.len().div_ceil(4) as u64);

    let format = json!({"type": "json_schema", "name": "trip", "schema": schema()});
    let body = json!({"model": "m", "input": "Hello", "text": {"format": format}});
    let answer = object(&send(RESPONSES, &body));
    assert_eq!(answer["output"][0]["content"][0]["text"], ANSWER);
    assert_eq!(answer["text"]["format"], format);

    let format = json!({"type": "json_schema", "schema": schema()});
    for field in [json!({"output_config": {"format": format}}), json!({"output_format": format})] {
        let mut body = json!({"model": "m", "max_tokens": 99, "messages": ["Hi"]});
        body.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
        assert_eq!(object(&send(MESSAGES, &body))["content"][0]["text"], ANSWER);
    }

    for name in ["responseSchema", "responseJsonSchema"] {
        let config = json!({"responseMimeType": "application/json", name: schema()});
        let body = json!({"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": config});
        let parts = &object(&send(GENERATE, &body))["candidates"][0]["content"]["parts"];
        assert_eq!(parts[0]["text"], ANSWER);
    }
}

#[test]
fn format_without_schema_is_an_empty_object() {
    let answer = object(&send(CHAT, &chat_request(&json!({"type": "json_object"}))));
    assert_eq!(answer["choices"][0]["message"]["content"], "{}");
    let config = json!({"responseMimeType": "application/json"});
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": config});
    let parts = &object(&send(GENERATE, &body))["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0]["text"], "{}");
}

#[test]
fn streamed_answer_is_the_same_and_maximum_output_cuts_it() {
    let mut body = chat_request(&of_schema());
    body["stream"] = json!(true);
    let pieces: String = events(&send(CHAT, &body))
        .iter()
        .filter_map(|(_, event)| {
            event["choices"][0]["delta"]["content"].as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(pieces, ANSWER);
    body["stream"] = json!(false);
    body["max_tokens"] = json!(2);
    let answer = object(&send(CHAT, &body));
    assert_eq!(answer["choices"][0]["message"]["content"], ANSWER[..8]);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
}
