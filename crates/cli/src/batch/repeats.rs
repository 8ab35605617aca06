//! Whether a message repeats what a request says.

use std::collections::HashSet;

use serde_json::Value;

/// Whether `message` holds a text of the JSON `body`, or a run of [`RUN`] characters of one. The name
/// of the model is no secret.
pub(super) fn repeats(message: &str, body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return false };
    let characters: Vec<char> = message.chars().collect();
    let runs: HashSet<&[char]> = characters.windows(RUN).collect();
    holds(&body, &|text| {
        let text: Vec<char> = text.trim().chars().collect();
        let whole = text.len() >= SHORTEST && characters.windows(text.len()).any(|run| run == text);
        whole || text.windows(RUN).any(|run| runs.contains(run))
    })
}

fn holds(value: &Value, repeated: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => repeated(text),
        Value::Array(values) => values.iter().any(|value| holds(value, repeated)),
        Value::Object(fields) => {
            let mut fields = fields.iter().filter(|(name, _)| *name != "model");
            fields.any(|(_, value)| holds(value, repeated))
        }
        _ => false,
    }
}

/// As many characters in a row are no accident.
const RUN: usize = 12;
/// Shorter texts stand in many a message.
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"model": "gpt-4o-2024-08-06", "messages": [
        {"role": "user", "content": "My diagnosis is \u00e9rythema"},
        {"role": "user", "content": [{"type": "text", "text": "PIN 0042"}]}]}"#;

    #[test]
    fn message_with_a_part_of_the_prompt_repeats_it() {
        for message in [
            "refused: 'My diagnosis is...'",
            "unexpected \"sis is \u{e9}rythema\" in content",
            "bad input PIN 0042",
        ] {
            assert!(repeats(message, BODY), "{message}");
        }
    }

    #[test]
    fn message_of_its_own_words_or_the_model_repeats_nothing() {
        for message in
            ["The model `gpt-4o-2024-08-06` does not exist", "max_tokens is too large", ""]
        {
            assert!(!repeats(message, BODY), "{message}");
        }
        assert!(!repeats("anything", b"no JSON"));
    }
}
