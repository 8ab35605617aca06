/// Escapes characters that control a terminal.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, is_unsafe)
}

/// Escapes characters that control a terminal, except line breaks.
pub(crate) fn printable_lines(text: &str) -> String {
    escaped(text, |c| is_unsafe(c) && c != '\n')
}

/// Returns true for control characters and for those that change the direction of writing (Unicode
/// 16, 23.2).
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> String {
    let shown = |c: char| match is_unsafe(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let text = "a\u{1b}[2J\r\n\u{9b}é\u{202e}";
        assert_eq!(printable(text), "a\\u{1b}[2J\\r\\n\\u{9b}é\\u{202e}");
        assert_eq!(printable_lines(text), "a\\u{1b}[2J\\r\n\\u{9b}é\\u{202e}");
    }
}
