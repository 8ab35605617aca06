//! The smallest values that JSON schemas allow.

use serde_json::{Map, Value, json};

use super::text::text;

/// Returns the smallest value that a JSON schema allows. Patterns, and bounds other than those of numbers from
/// below, lengths of strings and `minItems`, are ignored.
pub(super) fn minimal_value(schema: &Value) -> Value {
    MinimalValue { root: schema, budget: MAX_VALUES }.value(schema)
}

/// Returns the smallest object that a JSON schema allows; an empty one if it allows none.
pub(super) fn minimal_object(schema: &Value) -> Value {
    match minimal_value(schema) {
        Value::Object(object) => Value::Object(object),
        _ => Value::Object(Map::new()),
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
        let branches = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| branch(&schema[name]));
        match (type_of(schema), branches) {
            (None, Some(branch)) => self.value(branch),
            (None, None) if schema["properties"].is_object() => self.object(schema),
            (kind, _) => match kind.unwrap_or_default().to_ascii_lowercase().as_str() {
                "object" => self.object(schema),
                "array" => self.array(schema),
                "string" => string(schema).into(),
                "integer" | "number" => number(schema),
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

/// Returns the first of alternative schemas that isn't a reference, since that may be to the schema itself.
fn branch(schemas: &Value) -> Option<&Value> {
    let is_plain = |schema: &&Value| schema.get("$ref").is_none();
    elements(schemas).find(is_plain).or_else(|| schemas.get(0))
}

/// Returns a string of the format and the least length of a schema.
fn string(schema: &Value) -> String {
    let of_format = FORMATS.iter().find(|(format, _)| schema["format"] == *format);
    let least = schema["minLength"].as_u64().unwrap_or(0).min(LONGEST_STRING);
    let letters = usize::try_from(least.max(3)).unwrap_or(usize::MAX);
    let long = || text(least.div_ceil(4).max(1)).chars().take(letters).collect::<String>();
    let mut string = of_format.map_or_else(long, |(_, example)| (*example).to_owned());
    while (string.chars().count() as u64) < least {
        string.push('.');
    }
    string
}

/// Returns the number nearest to 0 that the lower bounds of a schema allow.
fn number(schema: &Value) -> Value {
    let above = |bound: &Value| match bound.as_i64() {
        Some(bound) => Some(json!(bound.saturating_add(1))),
        None => Some(json!(bound.as_f64()? + 1.0)),
    };
    let exclusive = schema.get("exclusiveMinimum").and_then(above);
    schema.get("minimum").cloned().or(exclusive).unwrap_or_else(|| 0.into())
}

/// Strings of the formats that the providers support.
const FORMATS: [(&str, &str); 7] = [
    ("date-time", "2026-01-01T00:00:00Z"),
    ("date", "2026-01-01"),
    ("time", "00:00:00Z"),
    ("duration", "PT1S"),
    ("email", "fox@example.com"),
    ("uri", "https://example.com"),
    ("uuid", "00000000-0000-4000-8000-000000000000"),
];

/// The longest string, in characters.
const LONGEST_STRING: u64 = 4_096;

/// The maximum number of values, far more than a tool or an answer needs.
const MAX_VALUES: u32 = 256;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{minimal_object, minimal_value};

    #[test]
    fn value_is_minimal_for_the_schema() {
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
        assert_eq!(minimal_object(&schema), minimal);
    }

    #[test]
    fn uppercase_types_are_accepted() {
        let city = json!({"city": {"type": "STRING"}});
        let schema = json!({"type": "OBJECT", "properties": city, "required": ["city"]});
        assert_eq!(minimal_object(&schema), json!({"city": "the"}));
    }

    #[test]
    fn object_of_any_schema_is_an_object() {
        for schema in [json!(null), json!("x"), json!({"type": "array"}), json!({"$ref": "#/no"})] {
            assert_eq!(minimal_object(&schema), json!({}), "{schema}");
        }
    }

    #[test]
    fn recursive_schema_terminates() {
        let both = json!({"a": {"$ref": "#"}, "b": {"$ref": "#"}});
        let tree = json!({"type": "object", "properties": both, "required": ["a", "b"]});
        assert!(minimal_object(&tree).to_string().len() < 4_096);
        assert_eq!(minimal_object(&json!({"$ref": "#"})), json!({}));
        let long = json!({"type": "array", "minItems": u64::MAX, "items": {"type": "null"}});
        let long = json!({"properties": {"a": long}, "required": ["a"]});
        assert_eq!(minimal_object(&long)["a"].as_array().map(Vec::len), Some(254));
    }

    #[test]
    fn formats_and_lower_bounds_are_kept() {
        let value = |schema: Value| minimal_value(&schema);
        assert_eq!(value(json!({"type": "string", "format": "date"})), json!("2026-01-01"));
        assert_eq!(
            value(json!({"type": "string", "minLength": 9})).as_str().map(str::len),
            Some(9)
        );
        assert_eq!(value(json!({"type": "integer", "exclusiveMinimum": 4})), json!(5));
        let node = json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]});
        let list = json!({"type": "object", "properties": {"next": node}, "required": ["next"]});
        assert_eq!(value(list), json!({"next": null}));
    }
}
