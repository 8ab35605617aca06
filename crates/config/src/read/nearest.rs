/// Returns the most similar name, if it differs in at most a third of its letters.
pub(crate) fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    within(given, names, 3)
}

/// Returns the most similar name, if it differs in at most a sixth of its letters. This is strict enough
/// for a file that may belong to another program.
pub(crate) fn misspelt<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    within(given, names, 6)
}

fn within<'a>(given: &str, names: &[&'a str], letters: usize) -> Option<&'a str> {
    let given = given.to_lowercase().replace('-', "_");
    let distance = |name: &&'a str| (strsim::osa_distance(&given, name), *name);
    let (edits, name) = names.iter().map(distance).min_by_key(|(edits, _)| *edits)?;
    (edits <= name.chars().count().div_ceil(letters)).then_some(name)
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
    fn nearest_finds_typo_and_ignores_other_word() {
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
