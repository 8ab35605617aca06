/// A text that moves no cursor, changes no colour and stays on its line.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, acts)
}

/// The same for a text of several lines, which keeps them.
pub(super) fn printable_lines(text: &str) -> String {
    escaped(text, |c| acts(c) && c != '\n')
}

/// Whether a terminal does something at it: a control character, or one that turns the direction of
/// writing around (Unicode 16, 23.2).
fn acts(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> String {
    let shown = |c: char| match acts(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_is_escaped_and_the_rest_stays() {
        let text = "a\u{1b}[2J\r\n\u{9b}é\u{202e}";
        assert_eq!(printable(text), "a\\u{1b}[2J\\r\\n\\u{9b}é\\u{202e}");
        assert_eq!(printable_lines(text), "a\\u{1b}[2J\\r\n\\u{9b}é\\u{202e}");
    }
}
