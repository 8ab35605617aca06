//! Tests of the documentation: code blocks are run, and links have targets.

mod links;
mod page_run;
mod project_command;
mod transcript;

use std::fs;
use std::path::PathBuf;

use paceline_testing::markdown::{Page, pages, root};

use self::page_run::PageRun;

/// The languages of code blocks and how they are checked.
const LANGUAGES: [(&str, &str); 9] = [
    ("console", "run by `PageRun`, output compared"),
    ("json", "parsed"),
    ("jsonl", "parsed line by line"),
    ("python", "run by `sdk::documented` of paceline-serve"),
    ("rust", "doctests, see `rust_pages_are_doctests`"),
    ("sh", "run by `PageRun`"),
    ("text", "log lines, and commands of other programs; `cluster::causes` runs those of Redis"),
    ("toml", "resolved by cargo"),
    ("yaml", "loaded by `paceline config check`"),
];

#[test]
fn blocks_of_every_page_have_a_runner() {
    for block in pages().iter().flat_map(Page::blocks) {
        let is_known = LANGUAGES.iter().any(|(language, _)| *language == block.language);
        assert!(is_known, "{}: no runner for {:?}", block.place, block.language);
    }
}

#[test]
fn blocks_of_every_page_run_in_order() {
    let failed: Vec<_> = std::thread::scope(|scope| {
        let run = |page: Page| scope.spawn(move || PageRun::new().run(&page.blocks()));
        let runs: Vec<_> = pages().into_iter().map(run).collect();
        runs.into_iter().filter_map(|run| run.join().err()).collect()
    });
    assert!(failed.is_empty(), "{} pages failed", failed.len());
}

/// Rustdoc runs the Rust blocks of pages that a source file includes.
#[test]
fn rust_pages_are_doctests() {
    let included = included_pages();
    for page in pages() {
        if page.blocks().iter().all(|block| block.language != "rust") {
            continue;
        }
        let path = root().join(&page.name).canonicalize().expect("the page");
        assert!(included.contains(&path), "{}: no source file includes it", page.name);
    }
}

/// Files that the packages include in their documentation.
fn included_pages() -> Vec<PathBuf> {
    let packages = fs::read_dir(root().join("crates")).expect("the packages");
    let packages = packages.map(|package| package.expect("a package").path());
    let mut included = Vec::new();
    for source in packages.chain([root()]).map(|package| package.join("src")) {
        for file in ["lib.rs", "doc_pages.rs"] {
            let text = fs::read_to_string(source.join(file)).unwrap_or_default();
            let names =
                text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
            included.extend(
                names.map(|name| source.join(name).canonicalize().expect("an included file")),
            );
        }
    }
    included
}

#[test]
fn readme_has_at_most_150_lines() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    assert!(readme.lines().count() <= 150);
}
