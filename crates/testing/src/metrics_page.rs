//! A strict parser of Prometheus' text format.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed page of metrics.
#[derive(Debug)]
pub struct MetricsPage {
    /// Values by name and labels; the order of the labels is kept.
    series: BTreeMap<(String, Vec<(String, String)>), f64>,
    kinds: BTreeMap<String, String>,
}

impl MetricsPage {
    /// Parses a page.
    ///
    /// # Panics
    /// If a line is malformed, a series occurs twice, or a series has no `HELP` or `TYPE` before it.
    pub fn parse(text: &str) -> Self {
        let (mut series, mut kinds, mut helped) =
            (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, meaning) = help.split_once(' ').unwrap();
                assert!(!meaning.is_empty() && helped.insert(name.to_owned()), "{line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                let known = ["counter", "gauge", "histogram", "summary"].contains(&kind);
                let first = kinds.insert(name.to_owned(), kind.to_owned()).is_none();
                assert!(known && first && helped.contains(name), "{line}");
            } else {
                let (name, labels, value) = sample(line);
                let of = |suffix| name.strip_suffix(suffix).is_some_and(|n| kinds.contains_key(n));
                let typed =
                    kinds.contains_key(&name) || ["_sum", "_count", "_bucket"].iter().any(of);
                assert!(typed, "no TYPE before {line}");
                assert!(series.insert((name, labels), value).is_none(), "duplicate series: {line}");
            }
        }
        Self { series, kinds }
    }

    /// Returns the sum of all series with this name and at least these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |all: &[(String, String)]| {
            labels.iter().all(|(name, value)| all.iter().any(|(n, v)| n == name && v == value))
        };
        let of_name = self.series.iter().filter(|((other, _), _)| other == name);
        of_name.filter(|((_, all), _)| has(all)).map(|(_, value)| value).sum()
    }

    /// Returns the distinct values of a label among all series with this name.
    pub fn values(&self, name: &str, label: &str) -> BTreeSet<&str> {
        let of_name = self.series.keys().filter(|(other, _)| other == name);
        let labels = of_name.flat_map(|(_, labels)| labels);
        labels.filter(|(other, _)| other == label).map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the type of a metric.
    pub fn kind(&self, name: &str) -> Option<&str> {
        self.kinds.get(name).map(String::as_str)
    }

    /// Returns the number of series.
    pub fn series(&self) -> usize {
        self.series.len()
    }
}

fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let value = value.parse().expect("a number");
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("a brace at the end")),
        None => (series, ""),
    };
    assert!(is_name(name), "{line}");
    (name.to_owned(), pairs(labels), value)
}

/// Parses `name="value"` pairs, separated by commas, and removes the escapes.
fn pairs(labels: &str) -> Vec<(String, String)> {
    let (mut pairs, mut rest) = (Vec::new(), labels);
    while !rest.is_empty() {
        let (name, quoted) = rest.split_once("=\"").expect("a quoted value");
        assert!(is_name(name), "{labels}");
        let (mut value, mut chars) = (String::new(), quoted.char_indices());
        let end = loop {
            match chars.next().expect("a quote at the end") {
                (at, '"') => break at,
                (_, '\\') => value.push(chars.next().expect("an escaped character").1),
                (_, c) => value.push(c),
            }
        };
        pairs.push((name.to_owned(), value));
        rest = quoted[end + 1..].trim_start_matches(',');
    }
    pairs
}

fn is_name(name: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(valid) && !name.starts_with(|c: char| c.is_ascii_digit())
}
