use serde_json::{Map, Value, json};

use super::CannotCount;

/// The prompt of a chat completion, as a request for a Response has it.
pub(super) fn as_responses(mut body: Map<String, Value>) -> Result<Value, CannotCount> {
    let Some(Value::Array(messages)) = body.remove("messages") else {
        return Err(CannotCount::Unreadable);
    };
    let mut input = Vec::new();
    for mut message in messages {
        let message = &mut message;
        let calls = take(message, "tool_calls");
        if message["role"] == "tool" {
            input.push(output(message)?);
        } else if !message["content"].is_null() {
            input.push(said(message)?);
        }
        input.extend(array(calls).map(call));
    }
    let mut asked = json!({ "model": body.remove("model"), "input": input });
    if let Some(tools) = body.remove("tools") {
        asked["tools"] = array(tools).map(tool).collect();
    }
    Ok(asked)
}

fn said(message: &mut Value) -> Result<Value, CannotCount> {
    let role = take(message, "role");
    let content = match take(message, "content") {
        Value::Array(parts) => {
            let of = |part| part_of(&role, part);
            parts.into_iter().map(of).collect::<Result<_, _>>()?
        }
        text => text,
    };
    Ok(json!({ "role": role, "content": content }))
}

fn part_of(role: &Value, mut part: Value) -> Result<Value, CannotCount> {
    let text = if role == "assistant" { "output_text" } else { "input_text" };
    match part["type"].as_str() {
        Some("text") => Ok(json!({ "type": text, "text": take(&mut part, "text") })),
        Some("refusal") => Ok(part),
        Some("image_url") => {
            let image = &mut take(&mut part, "image_url");
            let detail = image["detail"].as_str().unwrap_or("auto").to_owned();
            Ok(json!({ "type": "input_image", "image_url": take(image, "url"), "detail": detail }))
        }
        other => Err(CannotCount::Unsupported { kind: other.unwrap_or("none").to_owned() }),
    }
}

/// What a tool answered.
fn output(message: &mut Value) -> Result<Value, CannotCount> {
    let id = take(message, "tool_call_id");
    let said = take(&mut said(message)?, "content");
    Ok(json!({ "type": "function_call_output", "call_id": id, "output": said }))
}

fn call(mut call: Value) -> Value {
    let (id, function) = (take(&mut call, "id"), &mut take(&mut call, "function"));
    let (name, arguments) = (take(function, "name"), take(function, "arguments"));
    json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments })
}

/// A function's members stand beside its type.
fn tool(mut tool: Value) -> Value {
    if let Value::Object(mut function) = take(&mut tool, "function") {
        function.insert("type".into(), "function".into());
        return function.into();
    }
    tool
}

/// A member that is taken out; null where there is none, or no object.
fn take(object: &mut Value, name: &str) -> Value {
    object.get_mut(name).map(Value::take).unwrap_or_default()
}

fn array(value: Value) -> impl Iterator<Item = Value> {
    let values = if let Value::Array(values) = value { values } else { Vec::new() };
    values.into_iter()
}
