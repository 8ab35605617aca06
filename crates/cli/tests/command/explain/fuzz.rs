//! Property tests: any file is read without a panic.

use paceline_cli::explain::{JsonLine, Summary, TableRow, explain};
use proptest::prelude::*;

use super::rig::{chat, exchange, har, read, usage};
use paceline_testing::full::full_or;

/// Reads, explains and formats all entries. Returns their number.
fn explain_all(bytes: &[u8]) -> usize {
    let mut summary = Summary::default();
    let (entries, _) = read(bytes);
    for (index, entry) in entries.iter().enumerate() {
        let explanation = explain(entry);
        summary.add(&explanation);
        let line = JsonLine::new("a.har", index, &explanation).to_string();
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
        assert!(!TableRow::new(index, &explanation).to_string().is_empty());
    }
    assert_eq!(summary.exchanges(), entries.len() as u64);
    assert!(!summary.to_string().is_empty());
    entries.len()
}

fn seed() -> Vec<u8> {
    let mut one = exchange(&chat(), &usage(12, 9));
    one["response"]["status"] = 429.into();
    one["response"]["headers"] = serde_json::json!([
        {"name": "retry-after", "value": "Sun, 01 Jun 2025 12:00:30 GMT"},
        {"name": "x-ratelimit-limit-tokens", "value": "30000"},
        {"name": "x-ratelimit-remaining-tokens", "value": "29943"},
        {"name": "x-ratelimit-reset-tokens", "value": "6m0s"},
    ]);
    let mut other = exchange(&chat(), &usage(1, 2));
    other["response"]["content"]["encoding"] = "base64".into();
    har(&[one, other]).into_bytes()
}

/// Returns mutations of a valid file.
fn mutations() -> impl Strategy<Value = Vec<(prop::sample::Index, Vec<u8>, usize)>> {
    let pieces = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        Just(b"null".to_vec()),
        Just(b"-1".to_vec()),
        Just(b"1e999".to_vec()),
        Just(b"18446744073709551616".to_vec()),
        Just(b"\"\\ud800\"".to_vec()),
        Just(b"[[[[{\"a\":".to_vec()),
        Just(b"}]}\n{".to_vec()),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), pieces, 0..20_usize), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(full_or(2_000, 200)))]

    #[test]
    fn arbitrary_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        explain_all(&bytes);
    }

    #[test]
    fn mutated_file_is_read_without_panic(changes in mutations()) {
        let mut bytes = seed();
        for (place, piece, removed) in changes {
            let at = place.index(bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, piece);
        }
        explain_all(&bytes);
    }
}

#[test]
fn seed_file_is_valid() {
    assert_eq!(explain_all(&seed()), 2);
}
