use std::borrow::Cow;

/// A text that may be shown: who logs in at a URL, and what stands after its `?` or `#`, is left out.
pub(in crate::config) fn mask(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return text.into() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // An unescaped `/` in a password ends the authority for a parser, but not for who reads along.
    let login = rest.rfind('@').filter(|at| *at <= end || rest[..*at].contains(':'));
    let tail = rest.find(['?', '#']);
    // What stands before a URL in the same text is kept with the scheme.
    match (login, tail) {
        (None, None) => text.into(),
        (Some(at), None) => format!("{scheme}://{HIDDEN}{}", &rest[at..]).into(),
        (None, Some(tail)) => format!("{scheme}://{}{HIDDEN}", &rest[..=tail]).into(),
        (Some(at), Some(tail)) if at < tail => {
            format!("{scheme}://{HIDDEN}{}{HIDDEN}", &rest[at..=tail]).into()
        }
        // A password with a `?` in it, or a query with an `@`: either side may be secret.
        (Some(_), Some(_)) => format!("{scheme}://{HIDDEN}").into(),
    }
}

/// What was given, for an error: nothing that may hold a password, and nothing long.
pub(in crate::config) fn quote(text: &str) -> String {
    if text.contains("://") {
        "a URL".to_owned()
    } else if text.chars().count() > LONGEST {
        "a long text".to_owned()
    } else {
        format!("{text:?}")
    }
}

const LONGEST: usize = 60;

const HIDDEN: &str = "***";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_logs_in_is_not_shown() {
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
