//! Tool calls that a request forces.

use paceline_simulate::{Provider, Settings, SimulatedReply};
use serde_json::{Value, json};

use super::{chat, events, object, post};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GENERATE: &str = "/v1beta/models/gemini-2.5-flash:generateContent";
const STREAM: &str = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";

/// Two tools, of which the second requires a city, and the expected arguments.
const NAMES: [&str; 2] = ["wait", "look_up"];
const ARGUMENTS: &str = r#"{"city":"Paris"}"#;

fn schema(name: &str) -> Value {
    let cities = json!({"type": "string", "enum": ["Paris", "Oslo"]});
    let required = if name == "wait" { json!([]) } else { json!(["city"]) };
    json!({"type": "object", "properties": {"city": cities}, "required": required})
}

fn chat_request(choice: &Value) -> Value {
    let mut body = chat("Hello");
    let function = |name| json!({"name": name, "parameters": schema(name)});
    body["tools"] = json!(NAMES.map(|n| json!({"type": "function", "function": function(n)})));
    body["tool_choice"] = choice.clone();
    body["stream_options"] = json!({"include_usage": true});
    body
}

fn responses_request(choice: &Value) -> Value {
    let tool = |name| json!({"type": "function", "name": name, "parameters": schema(name)});
    json!({"model": "m", "input": "Hello", "tools": NAMES.map(tool), "tool_choice": choice})
}

fn anthropic_request(choice: &Value) -> Value {
    let tool = |name| json!({"name": name, "input_schema": schema(name)});
    let tools = NAMES.map(tool);
    json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}],
        "tools": tools, "tool_choice": choice})
}

fn gemini_request(config: &Value) -> Value {
    let tool = |name| json!({"name": name, "parametersJsonSchema": schema(name)});
    json!({"contents": [{"parts": [{"text": "Hello"}]}],
        "tools": [{"functionDeclarations": NAMES.map(tool)}],
        "toolConfig": {"functionCallingConfig": config}})
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

/// Returns the name of the called tool, in any format; `None` for a text.
fn called(reply: &SimulatedReply) -> Option<String> {
    let answer = object(reply);
    let names = [
        &answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
        &answer["output"][0]["name"],
        &answer["content"][0]["name"],
        &answer["candidates"][0]["content"]["parts"][0]["functionCall"]["name"],
    ];
    names.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// Checks that each choice calls the expected tool, or none.
fn check(path: &str, request: fn(&Value) -> Value, choices: &[(Value, Option<&str>)]) {
    for (choice, name) in choices {
        let reply = post(Settings::default(), path, &request(choice));
        assert_eq!(called(&reply).as_deref(), *name, "{path} {choice}");
    }
}

#[test]
fn chat_calls_a_tool_only_when_forced() {
    let named = |name| json!({"type": "function", "function": {"name": name}});
    let allowed = |mode| json!({"mode": mode, "tools": [named("look_up")]});
    let allowed = |mode| json!({"type": "allowed_tools", "allowed_tools": allowed(mode)});
    let choices = [
        (json!("required"), Some("wait")),
        (named("look_up"), Some("look_up")),
        (allowed("required"), Some("look_up")),
        (allowed("auto"), None),
        (named("unknown"), None),
        (json!("auto"), None),
        (json!("none"), None),
        (Value::Null, None),
    ];
    check(CHAT, chat_request, &choices);
}

#[test]
fn response_calls_a_tool_only_when_forced() {
    let named = |name| json!({"type": "function", "name": name});
    let allowed =
        |mode| json!({"type": "allowed_tools", "mode": mode, "tools": [named("look_up")]});
    let choices = [
        (json!("required"), Some("wait")),
        (named("look_up"), Some("look_up")),
        (allowed("required"), Some("look_up")),
        (allowed("auto"), None),
        (json!({"type": "web_search_preview"}), None),
        (Value::Null, None),
    ];
    check(RESPONSES, responses_request, &choices);
}

#[test]
fn anthropic_message_calls_a_tool_only_when_forced() {
    let tool = |name| json!({"type": "tool", "name": name});
    let choices = [
        (json!({"type": "any"}), Some("wait")),
        (tool("look_up"), Some("look_up")),
        (tool("unknown"), None),
        (json!({"type": "auto"}), None),
        (Value::Null, None),
    ];
    check(MESSAGES, anthropic_request, &choices);
}

#[test]
fn gemini_calls_a_tool_only_when_forced() {
    let any = |names: &[&str]| json!({"mode": "ANY", "allowedFunctionNames": names});
    let choices = [
        (json!({"mode": "ANY"}), Some("wait")),
        (any(&["look_up"]), Some("look_up")),
        (any(&[]), Some("wait")),
        (any(&["unknown"]), None),
        (json!({"mode": "AUTO"}), None),
        (Value::Null, None),
    ];
    check(GENERATE, gemini_request, &choices);
}

#[test]
fn openai_stream_carries_the_same_call() {
    let choice = json!({"type": "function", "function": {"name": "look_up"}});
    let whole = post(Settings::default(), CHAT, &chat_request(&choice));
    let answer = object(&whole);
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(answer["choices"][0]["message"]["content"], Value::Null);
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"], json!({"name": "look_up", "arguments": ARGUMENTS}));
    assert_eq!(answer["usage"]["completion_tokens"], whole.usage.output);

    let parts = post(Settings::default(), CHAT, &streamed(chat_request(&choice)));
    assert_eq!(parts.usage, whole.usage);
    let events = events(&parts);
    let delta = |at: usize| &events[at].1["choices"][0]["delta"];
    let first = &delta(0)["tool_calls"][0];
    assert_eq!((&first["id"], &first["type"]), (&call["id"], &json!("function")));
    assert_eq!(first["function"], json!({"name": "look_up", "arguments": ""}));
    let arguments = events.iter().filter_map(|(_, chunk)| {
        chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str()
    });
    assert_eq!(arguments.collect::<String>(), ARGUMENTS);
    assert!(events.len() > 5, "the arguments are streamed in several parts");
    assert_eq!(events[events.len() - 3].1["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn every_chat_choice_has_a_separate_call() {
    let mut body = chat_request(&json!("required"));
    body["n"] = json!(2);
    let answer = object(&post(Settings::default(), CHAT, &body));
    let id = |choice: usize| answer["choices"][choice]["message"]["tool_calls"][0]["id"].as_str();
    assert!(id(0).is_some() && id(1).is_some() && id(0) != id(1), "{answer}");
}

#[test]
fn responses_stream_carries_the_same_call() {
    let choice = json!({"type": "function", "name": "look_up"});
    let answer = object(&post(Settings::default(), RESPONSES, &responses_request(&choice)));
    let item = &answer["output"][0];
    assert_eq!((&answer["status"], &answer["tool_choice"]), (&json!("completed"), &choice));
    assert_eq!((&item["type"], &item["arguments"]), (&json!("function_call"), &json!(ARGUMENTS)));

    let events =
        events(&post(Settings::default(), RESPONSES, &streamed(responses_request(&choice))));
    let named = |wanted: &'static str| {
        events.iter().filter(move |(name, _)| name.as_deref() == Some(wanted)).map(|(_, data)| data)
    };
    let added = named("response.output_item.added").next().expect("an item");
    assert_eq!((&added["item"]["name"], &added["item"]["arguments"]), (&item["name"], &json!("")));
    let parts = named("response.function_call_arguments.delta");
    let parts = parts.filter_map(|data| data["delta"].as_str());
    assert_eq!(parts.collect::<String>(), ARGUMENTS);
    assert_eq!(named("response.output_item.done").next().expect("an item")["item"], *item);
    let last = &events.last().expect("an end").1;
    assert_eq!(
        (&last["type"], &last["response"]["output"][0]),
        (&json!("response.completed"), item)
    );
}

#[test]
fn anthropic_stream_carries_the_same_call() {
    let choice = json!({"type": "tool", "name": "look_up"});
    let answer = object(&post(Settings::default(), MESSAGES, &anthropic_request(&choice)));
    let block = &answer["content"][0];
    assert_eq!((&answer["stop_reason"], &block["type"]), (&json!("tool_use"), &json!("tool_use")));
    assert_eq!(block["input"], json!({"city": "Paris"}));

    let events =
        events(&post(Settings::default(), MESSAGES, &streamed(anthropic_request(&choice))));
    let begun = &events[1].1["content_block"];
    assert_eq!((&begun["id"], &begun["name"]), (&block["id"], &block["name"]));
    assert_eq!(begun["input"], json!({}));
    let parts = events.iter().filter(|(_, event)| event["delta"]["type"] == "input_json_delta");
    let parts = parts.filter_map(|(_, event)| event["delta"]["partial_json"].as_str());
    assert_eq!(parts.collect::<String>(), ARGUMENTS);
    assert_eq!(events[events.len() - 2].1["delta"]["stop_reason"], "tool_use");
    assert_eq!(events[events.len() - 2].1["usage"], {
        let mut usage = answer["usage"].clone();
        usage.as_object_mut().expect("an object").retain(|name, _| name.ends_with("_tokens"));
        usage
    });
}

#[test]
fn gemini_stream_carries_the_call_in_one_chunk() {
    let config = json!({"mode": "ANY", "allowedFunctionNames": ["look_up"]});
    let answer = object(&post(Settings::default(), GENERATE, &gemini_request(&config)));
    let part = &answer["candidates"][0]["content"]["parts"][0];
    let call = json!({"name": "look_up", "args": {"city": "Paris"}});
    assert_eq!(part["functionCall"], call);
    assert_eq!(answer["candidates"][0]["finishReason"], "STOP");

    let events = events(&post(Settings::default(), STREAM, &gemini_request(&config)));
    let [(_, only)] = events.as_slice() else { panic!("not a single event: {events:?}") };
    assert_eq!(
        (&only["candidates"], &only["usageMetadata"]),
        (&answer["candidates"], &answer["usageMetadata"])
    );
}

#[test]
fn call_length_is_estimated_unless_requested() {
    let settings = || Settings::default();
    let mut body = chat_request(&json!("required"));
    let short = post(settings(), CHAT, &body).usage.output;
    assert!((2..10).contains(&short), "{short}");
    body["metadata"] = json!({"output_tokens": "70"});
    let reply = post(settings(), CHAT, &body);
    assert_eq!((called(&reply).as_deref(), reply.usage.output), (Some("wait"), 70));
}

#[test]
fn call_over_max_tokens_becomes_truncated_text() {
    let mut bodies = [
        (CHAT, chat_request(&json!("required"))),
        (RESPONSES, responses_request(&json!("required"))),
        (MESSAGES, anthropic_request(&json!({"type": "any"}))),
        (GENERATE, gemini_request(&json!({"mode": "ANY"}))),
    ];
    for (path, body) in &mut bodies {
        body["max_tokens"] = json!(1);
        body["max_output_tokens"] = json!(1);
        body["generationConfig"] = json!({"maxOutputTokens": 1});
        let reply = post(Settings::default(), path, body);
        let answer = object(&reply);
        let ends = [
            &answer["choices"][0]["finish_reason"],
            &answer["incomplete_details"]["reason"],
            &answer["stop_reason"],
            &answer["candidates"][0]["finishReason"],
        ];
        let end = ends.into_iter().find_map(Value::as_str).expect("a reason");
        assert!(
            ["length", "max_output_tokens", "max_tokens", "MAX_TOKENS"].contains(&end),
            "{end}"
        );
        assert_eq!((called(&reply), reply.usage.output), (None, 1), "{path}");
    }
}

#[test]
fn tool_result_counts_as_input() {
    let mut provider = Provider::new(Settings::default());
    let mut body = chat_request(&json!("required"));
    let mut send = |body: &Value| provider.receive(0, CHAT, body.to_string().as_bytes());
    let call = object(&send(&body))["choices"][0]["message"].clone();
    let id = call["tool_calls"][0]["id"].clone();
    body["tool_choice"] = json!("auto");
    let before = send(&body).usage.input;
    let result = json!({"role": "tool", "tool_call_id": id, "content": "It rains in Paris."});
    let messages = body["messages"].as_array_mut().expect("an array");
    messages.extend([call, result]);
    let reply = send(&body);
    assert_eq!((reply.status, called(&reply)), (200, None));
    assert!(reply.usage.input > before, "{} {before}", reply.usage.input);
}
