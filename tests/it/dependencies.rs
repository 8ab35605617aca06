//! The crates that the library links, according to the lock file.

use std::collections::BTreeSet;
use std::process::Command;

/// Returns the lines of `cargo tree` for a package, without duplicates and without our own packages.
fn tree(package: &str, args: &[&str]) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--offline", "--locked", "--package", package, "--prefix", "none"])
        .arg("--no-dedupe")
        .args(args)
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let lines = String::from_utf8(tree.stdout).expect("crate names are UTF-8");
    let lines = lines.lines().filter(|line| !line.starts_with("paceline"));
    lines.map(|line| line.trim_end_matches(" (proc-macro)").to_owned()).collect()
}

/// Returns the names and versions of the linked crates and macros.
fn linked(package: &str, features: &[&str]) -> BTreeSet<String> {
    tree(package, &[&["--edges", "normal"], features].concat())
}

/// Returns the linked crates and macros, of which there must be at most this many.
#[track_caller]
fn linked_at_most(most: usize, package: &str, features: &[&str]) -> BTreeSet<String> {
    let linked = linked(package, features);
    let count = linked.len();
    assert!(
        count <= most,
        "{count}: put new crates behind a feature, or justify them: {linked:#?}"
    );
    linked
}

#[test]
fn library_without_features_links_at_most_47_crates() {
    linked_at_most(47, "paceline", &["--no-default-features"]);
}

#[test]
fn limiter_without_features_links_at_most_34_crates() {
    let linked = linked_at_most(34, "paceline-limiter", &["--no-default-features"]);
    let is_foreign =
        |name: &&String| ["http", "serde_json"].iter().any(|own| name.starts_with(own));
    assert_eq!(linked.iter().find(is_foreign), None);
}

#[test]
fn provider_links_at_most_42_crates() {
    linked_at_most(42, "paceline-provider", &[]);
}

#[test]
fn default_features_link_at_most_48_crates_without_regex() {
    let linked = linked_at_most(48, "paceline", &[]);
    assert!(!linked.iter().any(|name| name.starts_with("regex")), "{linked:#?}");
}

/// serde_json's features change parsing in all crates of a program; only harmless ones may be enabled.
#[test]
fn no_feature_changes_json_parsing_of_other_crates() {
    let args = ["--edges", "normal,features", "--all-features", "--invert", "serde_json"];
    let features: BTreeSet<_> = tree("paceline", &args)
        .iter()
        .filter_map(|line| line.strip_prefix("serde_json feature ")?.split('"').nth(1))
        .map(str::to_owned)
        .collect();
    assert!(features.contains("raw_value"), "{features:?}");
    let harmless = ["alloc", "default", "raw_value", "std"];
    assert!(features.iter().all(|name| harmless.contains(&name.as_str())), "{features:?}");
}
