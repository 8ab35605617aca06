//! The list of models in each format. Any name can be used in requests.

use serde_json::{Value, json};

/// Returns the list of models, or the model at the end of a path, in OpenAI's format.
pub(super) fn openai(path: &str) -> Option<Value> {
    let model =
        |id: &str| json!({"id": id, "object": "model", "created": CREATED, "owned_by": "paceline"});
    at(path, "/models", OPENAI, model, |data| json!({"object": "list", "data": data}))
}

/// Returns the list of models, or the model at the end of a path, in Anthropic's format.
pub(super) fn anthropic(path: &str) -> Option<Value> {
    let model = |id: &str| {
        json!({
            "type": "model",
            "id": id,
            "display_name": id,
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "active",
        })
    };
    let list = |data: Vec<Value>| {
        let id = |model: Option<&Value>| model.map(|model| model["id"].clone());
        let (first, last) = (id(data.first()), id(data.last()));
        json!({"data": data, "has_more": false, "first_id": first, "last_id": last})
    };
    at(path, "/models", ANTHROPIC, model, list)
}

/// Returns the list of models, or the model at the end of a path, in Gemini's format.
pub(super) fn gemini(path: &str) -> Option<Value> {
    let model = |id: &str| {
        let methods = match id.contains("embedding") {
            true => ["embedContent", "batchEmbedContents", "countTokens"],
            false => ["generateContent", "streamGenerateContent", "countTokens"],
        };
        json!({
            "name": format!("models/{id}"),
            "version": "001",
            "displayName": id,
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": methods,
        })
    };
    at(path, "/models", GEMINI, model, |models| json!({"models": models}))
}

/// Returns the answer to a path without query that ends in the name of the collection, or in that and a model.
fn at(
    path: &str,
    collection: &str,
    names: [&str; 3],
    model: impl Fn(&str) -> Value,
    list: impl FnOnce(Vec<Value>) -> Value,
) -> Option<Value> {
    let (_, rest) = path.split_once(collection)?;
    match rest.strip_prefix('/') {
        Some(name) if !name.is_empty() => Some(model(name)),
        _ if rest.is_empty() => Some(list(names.iter().map(|name| model(name)).collect())),
        _ => None,
    }
}

const OPENAI: [&str; 3] = ["gpt-4o", "gpt-5.4", "text-embedding-3-small"];
const ANTHROPIC: [&str; 3] = ["claude-opus-5", "claude-sonnet-4-5", "claude-haiku-4-5"];
const GEMINI: [&str; 3] = ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-embedding-001"];

/// The first second of 2026.
const CREATED: u64 = 1_767_225_600;
