use std::borrow::Cow;

/// A text that may be shown: who logs in at a URL, and what stands after its `?`, is left out.
pub(in crate::config) fn mask(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return text.into() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // An unescaped `/` in a password ends the authority for a parser, but not for who reads along.
    let login = rest.rfind('@').filter(|at| *at <= end || rest[..*at].contains(':'));
    let query = rest.find('?').filter(|query| login.is_none_or(|at| at < *query));
    if login.is_none() && query.is_none() {
        return text.into();
    }
    let from = login.unwrap_or(0);
    let until = query.unwrap_or(rest.len());
    let stars = if login.is_some() { HIDDEN } else { "" };
    let tail = if query.is_some() { "?***" } else { "" };
    // What stands before a URL in the same text is kept with the scheme.
    format!("{scheme}://{stars}{}{tail}", &rest[from..until]).into()
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
            ("redis://u:p?w@h:1", "redis://***@h:1"),
            ("https://h/path?api_key=hunter2", "https://h/path?***"),
            ("https://h/a@b", "https://h/a@b"),
            ("redis://h:6379", "redis://h:6379"),
            ("plain", "plain"),
        ] {
            assert_eq!(mask(text), shown);
        }
    }
}
