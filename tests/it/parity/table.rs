//! Checks the table of tests/PARITY.md against the sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The letter and the number of rows of each origin: go-ratelimit, Foundation, the swarm, GoCC, and further
/// requirements.
const ROWS: [(char, usize); 5] = [('g', 20), ('f', 9), ('s', 14), ('c', 15), ('d', 9)];

/// The test folders of the packages that have rows.
const FOLDERS: [&str; 5] =
    ["tests/it", "tests/state", "crates/config/tests", "crates/serve/tests", "crates/cli/tests"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of each row of the table.
fn table() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(root().join("tests/PARITY.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows = rows.filter(|(row, _)| *row != "row");
    let files = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    rows.map(|(row, cell)| (row.to_owned(), files(cell))).collect()
}

fn sources(folder: PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Returns the rows after which the tests in a file are named.
fn rows_of(text: &str) -> Vec<&str> {
    let names = text.split("fn ").skip(1).filter_map(|rest| rest.split('_').next());
    let is_row = |name: &&str| {
        let number = name.get(1..).and_then(|number| number.parse::<usize>().ok());
        name.len() == 3 && number.is_some() && ROWS.iter().any(|(kind, _)| name.starts_with(*kind))
    };
    names.filter(is_row).collect()
}

#[test]
fn parity_table_lists_every_row_with_existing_tests() {
    let table = table();
    let numbered =
        |&(kind, last): &(char, usize)| (1..=last).map(move |number| format!("{kind}{number:02}"));
    let mut rows: Vec<String> = ROWS.iter().flat_map(numbered).collect();
    rows.sort();
    assert_eq!(table.keys().cloned().collect::<Vec<_>>(), rows);
    for (row, files) in &table {
        assert!(!files.is_empty(), "{row}");
        for file in files {
            let text =
                fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            let named = rows_of(&text).contains(&row.as_str());
            // The tests of this row have names of their own.
            assert!(named || (row == "c15" && text.contains("#[tokio::test")), "{row}: {file}");
        }
    }
    for path in FOLDERS.into_iter().flat_map(|folder| sources(root().join(folder))) {
        let text = fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(root()).unwrap().to_str().unwrap();
        for row in rows_of(&text) {
            assert!(
                table[row].iter().any(|listed| listed == file),
                "{row} is not listed with {file}"
            );
        }
    }
}
