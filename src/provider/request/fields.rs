use std::borrow::Cow;

/// Gives each parameter behind the first `;` of a field (`form-data; name="model"`): its name, and its
/// value without quotes and escapes. `None` where servers might read the parameters differently.
pub(super) fn parameters<'t>(
    field: &'t str,
    mut take: impl FnMut(&'t str, Cow<'t, str>),
) -> Option<()> {
    let mut rest = field.split_once(';').map_or("", |(_, rest)| rest).trim();
    while !rest.is_empty() {
        let (name, value) = rest.split_once('=')?;
        let (value, behind) = match value.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (value, behind) = value.split_at(value.find(';').unwrap_or(value.len()));
                let value = value.trim_end();
                if value.contains(|letter: char| letter == '"' || letter.is_whitespace()) {
                    return None;
                }
                (Cow::Borrowed(value), behind)
            }
        };
        if !is_token(name) {
            return None;
        }
        take(name, value);
        let behind = behind.trim_start();
        rest = match behind.strip_prefix(';') {
            Some(rest) => rest.trim_start(),
            None if behind.is_empty() => "",
            None => return None,
        };
    }
    Some(())
}

/// A text up to its closing quote, and what stands behind that.
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
