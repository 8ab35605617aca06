/// The name that somebody may have meant, if one is near: a slip for each three letters.
pub(in crate::config) fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    let given = given.to_lowercase().replace('-', "_");
    let far = |name: &&'a str| (slips(&given, name), *name);
    let (slips, name) = names.iter().map(far).min_by_key(|(slips, _)| *slips)?;
    (slips <= name.chars().count().div_ceil(3)).then_some(name)
}

/// How many letters must be put in, taken out, changed or swapped with the next.
fn slips(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
