use serde_json::{Map, Value, json};

use super::CannotCount;

/// Returns the prompt of a chat completion in the format of OpenAI's Responses.
pub(super) fn as_responses(mut body: Map<String, Value>) -> Result<Value, CannotCount> {
    let Some(Value::Array(messages)) = body.remove("messages") else {
        return Err(CannotCount::Unreadable);
    };
    let mut input = Vec::new();
    for mut message in messages {
        let message = &mut message;
        let calls = take(message, "tool_calls");
        if message["role"] == "tool" {
            input.push(call_output(message)?);
        } else if !message["content"].is_null() {
            input.push(message_item(message)?);
        }
        input.extend(array(calls).map(call));
    }
    let mut request = json!({ "model": body.remove("model"), "input": input });
    if let Some(tools) = body.remove("tools") {
        request["tools"] = array(tools).map(tool).collect();
    }
    Ok(request)
}

fn message_item(message: &mut Value) -> Result<Value, CannotCount> {
    let role = take(message, "role");
    let content = match take(message, "content") {
        Value::Array(parts) => {
            let part = |part| content_part(&role, part);
            parts.into_iter().map(part).collect::<Result<_, _>>()?
        }
        text => text,
    };
    Ok(json!({ "role": role, "content": content }))
}

fn content_part(role: &Value, mut part: Value) -> Result<Value, CannotCount> {
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

/// Returns the output of a tool call.
fn call_output(message: &mut Value) -> Result<Value, CannotCount> {
    let id = take(message, "tool_call_id");
    let content = take(&mut message_item(message)?, "content");
    Ok(json!({ "type": "function_call_output", "call_id": id, "output": content }))
}

/// Returns a tool call in the format of Responses.
fn call(mut call: Value) -> Value {
    let (id, function) = (take(&mut call, "id"), &mut take(&mut call, "function"));
    let (name, arguments) = (take(function, "name"), take(function, "arguments"));
    json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments })
}

/// Returns a tool in the format of Responses, where the members of a function are beside its type.
fn tool(mut tool: Value) -> Value {
    if let Value::Object(mut function) = take(&mut tool, "function") {
        function.insert("type".into(), "function".into());
        return function.into();
    }
    tool
}

/// Removes and returns a member; null if there is none.
fn take(object: &mut Value, name: &str) -> Value {
    object.get_mut(name).map(Value::take).unwrap_or_default()
}

fn array(value: Value) -> impl Iterator<Item = Value> {
    let values = if let Value::Array(values) = value { values } else { Vec::new() };
    values.into_iter()
}
