//! Files and folders at the top level.

use std::fs;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn d09_required_files_exist_and_are_not_empty() {
    let required = ["Cargo.toml", "README.md"];
    let more = ["Cargo.lock", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", ".gitignore"];
    for file in required.into_iter().chain(more) {
        let text = fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(!text.trim().is_empty(), "{file} is empty");
    }
}

#[test]
fn d09_required_folders_contain_rust_sources() {
    for folder in ["src", "tests/it", "examples", "benches"] {
        let entries =
            fs::read_dir(path(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
        let rust = |path: PathBuf| path.extension().is_some_and(|extension| extension == "rs");
        assert!(
            entries.map(|entry| entry.unwrap().path()).any(rust),
            "{folder} has no Rust source"
        );
    }
    assert!(path("src/lib.rs").is_file() && path("crates/cli/src/main.rs").is_file());
}

#[test]
fn d09_manifest_names_readme_and_both_licences() {
    let manifest = fs::read_to_string(path("Cargo.toml")).unwrap();
    assert!(manifest.contains("readme = \"README.md\""));
    assert!(manifest.contains("license = \"MIT OR Apache-2.0\""));
}
