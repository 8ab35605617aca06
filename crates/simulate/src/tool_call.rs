//! Tool calls, made if a request forces one.

use serde_json::Value;

use super::minimal_value::minimal_object;
use super::text::split;
use super::token_count::count_tokens;

/// A tool call with the smallest arguments that the tool's JSON schema allows.
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
        let arguments = minimal_object(schema);
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ToolCall;

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
