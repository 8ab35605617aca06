use std::borrow::Cow;

/// Returns a text for display, in which the credentials, the query and the fragment of a URL are masked.
pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return text.into() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // An unescaped `/` in a password ends the authority for a parser, but the rest is still secret.
    let login = rest.rfind('@').filter(|at| *at <= end || rest[..*at].contains(':'));
    let tail = rest.find(['?', '#']);
    // Text in front of the URL is kept with the scheme.
    match (login, tail) {
        (None, None) => text.into(),
        (Some(at), None) => format!("{scheme}://{MASK}{}", &rest[at..]).into(),
        (None, Some(tail)) => format!("{scheme}://{}{MASK}", &rest[..=tail]).into(),
        (Some(at), Some(tail)) if at < tail => {
            format!("{scheme}://{MASK}{}{MASK}", &rest[at..=tail]).into()
        }
        // A password with a `?`, or a query with an `@`: both parts may be secret.
        (Some(_), Some(_)) => format!("{scheme}://{MASK}").into(),
    }
}

/// Quotes a value in an error, unless it is long or may contain a password.
pub(crate) fn quote(text: &str) -> String {
    if text.contains("://") {
        "a URL".to_owned()
    } else if text.chars().count() > MAX_LENGTH {
        "a long string".to_owned()
    } else {
        format!("{text:?}")
    }
}

const MAX_LENGTH: usize = 60;

const MASK: &str = "***";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_query_are_masked() {
        for (text, shown) in [
            ("redis://:hunter2@h:6379/0", "redis://***@h:6379/0"),
            ("nats://token@h", "nats://***@h"),
            ("redis://u:p@ss/w@h:1", "redis://***@h:1"),
            ("redis://u:p?w@h:1", "redis://***"),
            ("https://h:8443/x?key=abc@hunter2", "https://***"),
            ("https://u:p@h/x?key=hunter2", "https://***@h/x?***"),
            ("https://h/x#hunter2", "https://h/x#***"),
            ("https://h/path?api_key=hunter2", "https://h/path?***"),
            ("https://h/a@b", "https://h/a@b"),
            ("redis://h:6379", "redis://h:6379"),
            ("plain", "plain"),
        ] {
            assert_eq!(mask(text), shown);
        }
    }
}
