use paceline_config::{Config, Position};
use proptest::prelude::*;

use super::EXAMPLE;
use paceline_testing::full::full_or;

/// A random change of a text.
#[derive(Debug, Clone)]
enum Change {
    Insert(usize, String),
    Remove(usize, usize),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            ":",
            "- ",
            "[",
            "]",
            "{",
            "}",
            "&a ",
            "*a",
            "!!str ",
            "? ",
            "|",
            ">",
            "'",
            "\"",
            "#",
            "\n",
            "\t",
            "\r",
            "---\n",
            "...",
            "%YAML",
            "<<: ",
            "~",
            "null",
            "-1",
            "1.5",
            "1e999",
            ".nan",
            "99999999999999999999",
            "0s",
            "day",
            "\u{feff}",
            "\u{0}",
            "\u{2028}",
            "é",
            "  ",
            ",",
            "rpm",
            "zone",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop_oneof![
        (any::<usize>(), piece).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (any::<usize>(), 0_usize..40).prop_map(|(at, length)| Change::Remove(at, length)),
        (any::<usize>(), 0_usize..80).prop_map(|(at, length)| Change::Repeat(at, length)),
    ]
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for change in changes {
        let within = |at: usize, length: usize| {
            let at = at % (chars.len() + 1);
            at..(at + length).min(chars.len())
        };
        match change {
            Change::Insert(at, piece) => {
                let at = within(*at, 0);
                chars.splice(at, piece.chars());
            }
            Change::Remove(at, length) => {
                let range = within(*at, *length);
                chars.drain(range);
            }
            Change::Repeat(at, length) => {
                let range = within(*at, *length);
                let again = chars[range.clone()].to_vec();
                chars.splice(range.start..range.start, again);
            }
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: full_or(3_000, 300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_file_is_read_or_refused_with_a_position(
        changes in prop::collection::vec(change(), 1..8),
    ) {
        let text = changed(EXAMPLE, &changes);
        match Config::parse(&text) {
            Ok(config) => prop_assert!(config.builder().build().is_ok(), "{text}"),
            Err(error) => {
                prop_assert!(!error.problems.is_empty());
                for problem in error.problems {
                    let at = problem.origin.position();
                    let Some(Position { line, column }) = at else {
                        panic!("{problem} has no line\n{text}");
                    };
                    let lines = text.split('\n').count();
                    prop_assert!((1..=lines).contains(&line) && column >= 1, "{problem}\n{text}");
                    prop_assert!(!problem.message.is_empty());
                }
            }
        }
    }
}
