/// Returns a text in which words that look like an API key are replaced by `***`: Google states the key of a suspended
/// project (<https://github.com/google/generative-ai-docs/issues/356>).
pub(super) fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for part in text.split_inclusive(|c| !is_in_key(c)) {
        let word = part.trim_end_matches(|c| !is_in_key(c));
        masked.push_str(if is_secret(word) { "***" } else { word });
        masked.push_str(&part[word.len()..]);
    }
    masked
}

fn is_in_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Names of models have no long part of capitals, small letters and digits; identifiers of requests may.
fn is_secret(word: &str) -> bool {
    let is_random = |part: &str| {
        let has = |is: fn(&u8) -> bool| part.as_bytes().iter().any(is);
        let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        let has_letter_and_digit = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
        has_letter_and_digit && (part.len() >= 12 && is_mixed || part.len() >= 32)
    };
    let is_random = word.split(['-', '_']).any(is_random) && !word.starts_with("req");
    word.len() >= SHORTEST && (is_random || PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
}

const SHORTEST: usize = 20;

/// The beginnings of keys of known providers.
const PREFIXES: &[&str] =
    &["sk-", "AIza", "gsk_", "xai-", "hf_", "nvapi-", "pplx-", "r8_", "fw_", "AKIA"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_masked_and_names_are_not() {
        for (text, shown) in [
            (
                "Consumer 'api_key:AIzaSyA-1234567890abcdefghijklmnopqrstu' has been suspended.",
                "Consumer 'api_key:***' has been suspended.",
            ),
            ("key 0123456789abcdef0123456789abcdef.", "key ***."),
            ("Incorrect API key: sk-proj-abcdefghijklmnop", "Incorrect API key: ***"),
            ("sk-...1234", "sk-...1234"),
        ] {
            assert_eq!(masked(text), shown);
        }
        for name in [
            "claude-sonnet-4-5-20250929",
            "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
            "GenerateContentInputTokensPerModelPerMinute-FreeTier",
            "org-x on tokens per min (TPM): Limit 30000, Requested 41210.",
            "request req_011CQ5ZcAbCdEfGhIjKlMnOp",
        ] {
            assert_eq!(masked(name), name);
        }
    }
}
