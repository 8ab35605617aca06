use super::key::Key;
use super::node::{Node, Value};
use super::origin::Origin;

impl Node {
    /// Converts a JSON value. All nodes have the same origin.
    pub(crate) fn from_json(json: &serde_json::Value, origin: &Origin) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => Value::Number(number.to_string()),
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => {
                Value::List(items.iter().map(|item| Self::from_json(item, origin)).collect())
            }
            Json::Object(entries) => {
                let entry = |(name, value): (&String, &Json)| {
                    let key = Key { name: name.clone(), origin: origin.clone() };
                    (key, Self::from_json(value, origin))
                };
                Value::Map(entries.iter().map(entry).collect())
            }
        };
        Self::new(origin.clone(), value)
    }
}
