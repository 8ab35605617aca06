/// The name that somebody may have meant, if one is near: a slip for each three letters.
pub(in crate::config) fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    within(given, names, 3)
}

/// The name that somebody has surely meant: a slip for each six letters. What is shown of a file that
/// may be another program's goes by this.
pub(in crate::config) fn misspelt<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    within(given, names, 6)
}

fn within<'a>(given: &str, names: &[&'a str], letters: usize) -> Option<&'a str> {
    let given = given.to_lowercase().replace('-', "_");
    let far = |name: &&'a str| (strsim::osa_distance(&given, name), *name);
    let (slips, name) = names.iter().map(far).min_by_key(|(slips, _)| *slips)?;
    (slips <= name.chars().count().div_ceil(letters)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_name_is_nearer_than_another_word() {
        let names = ["store", "quotas", "cluster", "unknown_key"];
        for (given, meant) in [
            ("stoer", Some("store")),
            ("Quota", Some("quotas")),
            ("unknown-keys", Some("unknown_key")),
            ("hunter", None),
            ("LISTEN", None),
            ("score_it", None),
        ] {
            assert_eq!(misspelt(given, &names), meant, "{given}");
        }
    }

    #[test]
    fn a_slip_is_seen_and_another_word_is_not() {
        let names = ["rpm", "tpm", "concurrency", "recovery_interval"];
        for (given, meant) in [
            ("rmp", Some("rpm")),
            ("concurency", Some("concurrency")),
            ("Recovery-Interval", Some("recovery_interval")),
            ("window", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, &names), meant, "{given}");
        }
    }
}
