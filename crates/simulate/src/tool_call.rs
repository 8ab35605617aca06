//! Tool calls, made if a request forces one.

use serde_json::{Map, Value};

use super::text::{split, text};
use super::token_count::count_tokens;

/// A tool call with the smallest arguments that the tool's JSON schema allows. Formats, patterns,
/// and bounds other than `minimum` and `minItems` are ignored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl ToolCall {
    /// Creates a call of the first of these tools, given by name and schema, that is allowed;
    /// `None` allows any.
    pub(super) fn first<'a>(
        mut tools: impl Iterator<Item = (&'a Value, &'a Value)>,
        allowed: Option<&[&Value]>,
    ) -> Option<Self> {
        let is_allowed = |name: &Value| allowed.is_none_or(|allowed| allowed.contains(&name));
        let (name, schema) = tools.find(|(name, _)| name.is_string() && is_allowed(name))?;
        let mut minimal = MinimalValue { root: schema, budget: MAX_VALUES };
        let arguments = match minimal.value(schema) {
            Value::Object(arguments) => Value::Object(arguments),
            _ => Value::Object(Map::new()),
        };
        Some(Self { name: name.as_str()?.to_owned(), arguments })
    }

    /// Returns the estimated tokens of the call.
    pub(super) fn tokens(&self) -> u64 {
        count_tokens(&self.name) + count_tokens(&self.arguments.to_string())
    }

    /// Returns the arguments as JSON, in the chunks of a stream.
    pub(super) fn deltas(&self) -> impl Iterator<Item = String> {
        split(&self.arguments.to_string())
    }
}

/// Returns the elements of an array, and none for other values.
pub(super) fn elements(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

/// A generator of the smallest value of a schema.
struct MinimalValue<'a> {
    /// The root of references.
    root: &'a Value,
    /// The remaining number of values, since a schema can require unlimited ones.
    budget: u32,
}

impl<'a> MinimalValue<'a> {
    fn value(&mut self, schema: &'a Value) -> Value {
        let Some(budget) = self.budget.checked_sub(1) else { return Value::Null };
        self.budget = budget;
        if let Some(path) = schema["$ref"].as_str() {
            let target = path.strip_prefix('#').and_then(|path| self.root.pointer(path));
            return target.map_or(Value::Null, |schema| self.value(schema));
        }
        if let Some(given) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return given.clone();
        }
        let branches = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| schema[name].get(0));
        match (type_of(schema), branches) {
            (None, Some(branch)) => self.value(branch),
            (None, None) if schema["properties"].is_object() => self.object(schema),
            (kind, _) => match kind.unwrap_or_default().to_ascii_lowercase().as_str() {
                "object" => self.object(schema),
                "array" => self.array(schema),
                "string" => text(1).trim_end().into(),
                "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
                "boolean" => false.into(),
                _ => Value::Null,
            },
        }
    }

    fn object(&mut self, schema: &'a Value) -> Value {
        let names = elements(&schema["required"]).filter_map(Value::as_str);
        names.map(|name| (name.to_owned(), self.value(&schema["properties"][name]))).collect()
    }

    fn array(&mut self, schema: &'a Value) -> Value {
        let minimal = schema["minItems"].as_u64().unwrap_or(0).min(self.budget.into());
        (0..minimal).map(|_| self.value(&schema["items"])).collect()
    }
}

/// Returns the type of a schema, or the first of several.
fn type_of(schema: &Value) -> Option<&str> {
    let kind = &schema["type"];
    kind.as_str().or_else(|| kind[0].as_str())
}

/// The maximum number of values, far more than a tool needs.
const MAX_VALUES: u32 = 256;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ToolCall;

    fn arguments(schema: &Value) -> Value {
        let name = json!("look_up");
        ToolCall::first([(&name, schema)].into_iter(), None).expect("a call").arguments
    }

    #[test]
    fn arguments_are_minimal_for_the_schema() {
        let schema = json!({
            "type": "object",
            "required": ["city", "unit", "days", "near", "exact", "where", "note", "kind"],
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "minimum": 1},
                "near": {"type": "array", "items": {"type": "number"}, "minItems": 2},
                "exact": {"type": "boolean"},
                "where": {"$ref": "#/$defs/Place"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "kind": {"type": ["null", "string"]},
                "never": {"type": "string"},
            },
            "$defs": {"Place": {"properties": {"x": {"const": 7}}, "required": ["x"]}},
        });
        let minimal = json!({
            "city": "the", "unit": "celsius", "days": 1, "near": [0, 0], "exact": false,
            "where": {"x": 7}, "note": "the", "kind": null,
        });
        assert_eq!(arguments(&schema), minimal);
    }

    #[test]
    fn uppercase_types_are_accepted() {
        let city = json!({"city": {"type": "STRING"}});
        let schema = json!({"type": "OBJECT", "properties": city, "required": ["city"]});
        assert_eq!(arguments(&schema), json!({"city": "the"}));
    }

    #[test]
    fn arguments_of_any_schema_are_an_object() {
        for schema in [json!(null), json!("x"), json!({"type": "array"}), json!({"$ref": "#/no"})] {
            assert_eq!(arguments(&schema), json!({}), "{schema}");
        }
    }

    #[test]
    fn recursive_schema_terminates() {
        let both = json!({"a": {"$ref": "#"}, "b": {"$ref": "#"}});
        let tree = json!({"type": "object", "properties": both, "required": ["a", "b"]});
        assert!(arguments(&tree).to_string().len() < 4_096);
        assert_eq!(arguments(&json!({"$ref": "#"})), json!({}));
        let long = json!({"type": "array", "minItems": u64::MAX, "items": {"type": "null"}});
        let long = json!({"properties": {"a": long}, "required": ["a"]});
        assert_eq!(arguments(&long)["a"].as_array().map(Vec::len), Some(254));
    }

    #[test]
    fn first_allowed_tool_is_called() {
        let [one, two, three] = ["one", "two", "three"].map(|name| json!(name));
        let schema = json!({});
        let tools = || [(&one, &schema), (&two, &schema)].into_iter();
        let called =
            |allowed: Option<&[&Value]>| ToolCall::first(tools(), allowed).map(|call| call.name);
        assert_eq!(called(None).as_deref(), Some("one"));
        assert_eq!(called(Some(&[&two])).as_deref(), Some("two"));
        assert_eq!(called(Some(&[&three])), None);
    }
}
