use super::node::Value;

/// Resolves a plain scalar by the core schema of YAML 1.2 (10.3.2): `no` and `1_000` are strings.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::Text(text.to_owned()), Value::Number),
    }
}

/// Returns the number in a notation that Rust's parsers accept, or `None` if the text is not a number.
fn number(text: &str) -> Option<String> {
    let radix = |digits: &str, radix| u128::from_str_radix(digits, radix).ok();
    if let Some(hex) = text.strip_prefix("0x") {
        return unsigned(hex).and_then(|hex| radix(hex, 16)).map(|number| number.to_string());
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return unsigned(octal).and_then(|octal| radix(octal, 8)).map(|number| number.to_string());
    }
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (if text.starts_with('-') { "-" } else { "" }, digits),
        None => ("", text),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return Some(format!("{sign}inf"));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some("NaN".to_owned());
    }
    let starts_with_digit = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (starts_with_digit && digits.parse::<f64>().is_ok()).then(|| format!("{sign}{digits}"))
}

fn unsigned(digits: &str) -> Option<&str> {
    (!digits.starts_with(['+', '-'])).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_core_schema() {
        for (text, expected) in [
            ("12", "12"),
            ("+12", "12"),
            ("-5", "-5"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1e3", "1e3"),
        ] {
            assert_eq!(number(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["1_000", "60s", "127.0.0.1", "12:30", "inf", "nan", "0x+1", "0b1", "--1", "e"]
        {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
