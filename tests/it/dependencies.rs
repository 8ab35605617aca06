//! The crates that the library links, by the lock file.

use std::collections::BTreeSet;
use std::process::Command;

/// The lines of `cargo tree` of the library, each once, without the library itself.
fn tree(args: &[&str]) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--offline", "--locked", "--package", "tollgate", "--prefix", "none"])
        .arg("--no-dedupe")
        .args(args)
        .output()
        .expect("cargo");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let lines = String::from_utf8(tree.stdout).expect("names");
    let lines = lines.lines().filter(|line| !line.starts_with("tollgate "));
    lines.map(|line| line.trim_end_matches(" (proc-macro)").to_owned()).collect()
}

/// Names and versions of the crates that are linked, and of the macros.
fn linked(features: &[&str]) -> BTreeSet<String> {
    tree(&[&["--edges", "normal"], features].concat())
}

#[test]
fn a_library_without_features_links_at_most_40_crates() {
    let linked = linked(&["--no-default-features"]);
    let count = linked.len();
    assert!(count <= 40, "{count}: put what is new behind a feature, or say why not: {linked:#?}");
}

#[test]
fn the_default_features_link_at_most_51_crates_and_no_regular_expressions() {
    let linked = linked(&[]);
    let count = linked.len();
    assert!(count <= 51, "{count}: put what is new behind a feature, or say why not: {linked:#?}");
    assert!(!linked.iter().any(|name| name.starts_with("regex")), "{linked:#?}");
}

/// Of the features of serde_json, these change nothing for other crates of a program.
#[test]
fn no_feature_changes_how_json_is_read_elsewhere() {
    let args = ["--edges", "normal,features", "--all-features", "--invert", "serde_json"];
    let asked: BTreeSet<_> = tree(&args)
        .iter()
        .filter_map(|line| line.strip_prefix("serde_json feature ")?.split('"').nth(1))
        .map(str::to_owned)
        .collect();
    assert!(asked.contains("raw_value"), "{asked:?}");
    let harmless = ["alloc", "default", "raw_value", "std"];
    assert!(asked.iter().all(|name| harmless.contains(&name.as_str())), "{asked:?}");
}
