//! The page that lists the facts about providers with their tests.

use std::fs;
use std::path::Path;

use paceline_provider::Profile;

#[test]
fn named_tests_of_provider_facts_exist() {
    let sources = sources();
    let tests: Vec<String> =
        rows().iter().flat_map(|row| quoted(row.rsplit(" | ").next().unwrap())).collect();
    assert!(tests.len() > 60, "{} tests are named", tests.len());
    for test in tests {
        assert!(sources.contains(&format!("#[test]\nfn {test}() {{")), "{test}: no such test");
    }
}

#[test]
fn provider_facts_have_a_row_for_each_profile() {
    let rows = rows();
    for profile in Profile::all() {
        let start = format!("| `{}` | ", profile.name());
        assert!(rows.iter().any(|row| row.starts_with(&start)), "{profile:?}: no fact");
    }
    for row in &rows {
        let test = row.rsplit(" | ").next().unwrap();
        assert!(test == "no documented example" || quoted(test).next().is_some(), "{row}: no test");
    }
}

/// Returns the rows of the table, without the last cell's border.
fn rows() -> Vec<String> {
    let page = fs::read_to_string(folder().join("../../docs/provider-facts.md")).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_end_matches(" |").to_owned()).collect()
}

/// Returns the names of tests between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).filter(|name| name.contains('_')).map(str::to_owned)
}

/// Returns the texts of the tests beside this file.
fn sources() -> String {
    let files = fs::read_dir(folder().join("tests/provider")).expect("the folder");
    let paths = files.map(|file| file.expect("an entry").path()).filter(|path| path.is_file());
    paths.map(|path| fs::read_to_string(path).expect("a source")).collect()
}

/// Returns the folder of this package.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
