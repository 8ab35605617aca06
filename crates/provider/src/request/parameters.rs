use std::borrow::Cow;

/// Calls `take` with the name and the unquoted value of each parameter after the first `;` of a header
/// field (`form-data; name="model"`). Returns `None` if servers might read the parameters differently.
pub(super) fn parameters<'t>(
    field: &'t str,
    mut take: impl FnMut(&'t str, Cow<'t, str>),
) -> Option<()> {
    let mut rest = field.split_once(';').map_or("", |(_, rest)| rest).trim();
    while !rest.is_empty() {
        let (name, value) = rest.split_once('=')?;
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (value, after) = value.split_at(value.find(';').unwrap_or(value.len()));
                let value = value.trim_end();
                if value.contains(|letter: char| letter == '"' || letter.is_whitespace()) {
                    return None;
                }
                (Cow::Borrowed(value), after)
            }
        };
        if !is_token(name) {
            return None;
        }
        take(name, value);
        let after = after.trim_start();
        rest = match after.strip_prefix(';') {
            Some(rest) => rest.trim_start(),
            None if after.is_empty() => "",
            None => return None,
        };
    }
    Some(())
}

/// Returns the text before its closing quote, without escapes, and the text after the quote.
fn unquoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut plain = String::new();
    let mut from = 0;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' if plain.is_empty() && from == 0 => {
                return Some((Cow::Borrowed(&text[..at]), &text[at + 1..]));
            }
            '"' => {
                plain.push_str(&text[from..at]);
                return Some((Cow::Owned(plain), &text[at + 1..]));
            }
            '\\' => {
                plain.push_str(&text[from..at]);
                from = letters.next()?.0;
            }
            _ => {}
        }
    }
    None
}

fn is_token(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_letter)
}
