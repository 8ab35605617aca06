//! Detects error messages that quote a request.

use std::collections::HashSet;

use serde_json::Value;

/// Returns true if `message` contains a text of the JSON `body`, or [`RUN`] consecutive characters
/// of one. The model's name doesn't count.
pub(super) fn quotes(message: &str, body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return false };
    let characters: Vec<char> = message.chars().collect();
    let runs: HashSet<&[char]> = characters.windows(RUN).collect();
    any_text(&body, &|text| {
        let text: Vec<char> = text.trim().chars().collect();
        let whole = text.len() >= SHORTEST && characters.windows(text.len()).any(|run| run == text);
        whole || text.windows(RUN).any(|run| runs.contains(run))
    })
}

fn any_text(value: &Value, repeated: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => repeated(text),
        Value::Array(values) => values.iter().any(|value| any_text(value, repeated)),
        Value::Object(fields) => {
            let mut fields = fields.iter().filter(|(name, _)| *name != "model");
            fields.any(|(_, value)| any_text(value, repeated))
        }
        _ => false,
    }
}

/// The number of consecutive characters that counts as a quote.
const RUN: usize = 12;
/// Shorter texts occur in messages by chance.
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"model": "gpt-4o-2024-08-06", "messages": [
        {"role": "user", "content": "My diagnosis is \u00e9rythema"},
        {"role": "user", "content": [{"type": "text", "text": "PIN 0042"}]}]}"#;

    #[test]
    fn message_with_part_of_prompt_is_quote() {
        for message in [
            "refused: 'My diagnosis is...'",
            "unexpected \"sis is \u{e9}rythema\" in content",
            "bad input PIN 0042",
        ] {
            assert!(quotes(message, BODY), "{message}");
        }
    }

    #[test]
    fn message_without_prompt_text_is_no_quote() {
        for message in
            ["The model `gpt-4o-2024-08-06` does not exist", "max_tokens is too large", ""]
        {
            assert!(!quotes(message, BODY), "{message}");
        }
        assert!(!quotes("anything", b"no JSON"));
    }
}
