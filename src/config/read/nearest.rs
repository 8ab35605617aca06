/// The name that somebody may have meant, if one is near: a slip for each three letters.
pub(in crate::config) fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    let given = given.to_lowercase().replace('-', "_");
    let far = |name: &&'a str| (strsim::osa_distance(&given, name), *name);
    let (slips, name) = names.iter().map(far).min_by_key(|(slips, _)| *slips)?;
    (slips <= name.chars().count().div_ceil(3)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
