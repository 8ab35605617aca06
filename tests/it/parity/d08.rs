//! The required packages are used in their modules.

use std::fs;
use std::path::{Path, PathBuf};

/// Each package, its use in the sources, and the module of the root package that must use it.
const PACKAGES: [(&str, &str, &str); 5] = [
    ("http", "http::", "src/middleware"),
    ("tower-layer", "tower_layer::Layer", "src/middleware"),
    ("tower-service", "tower_service::Service", "src/middleware"),
    ("reqwest", "reqwest::", "src/middleware"),
    ("reqwest-middleware", "reqwest_middleware::{", "src/middleware"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Returns `true` if a line of code in this folder contains the name; comments don't count.
fn is_used(folder: &str, name: &str) -> bool {
    sources(&root().join(folder)).iter().any(|path| {
        let text = fs::read_to_string(path).unwrap();
        let mut code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.any(|line| line.contains(name))
    })
}

/// Returns the lines of the sections with this name in the manifest.
fn section(name: &str) -> Vec<String> {
    section_of("Cargo.toml", name)
}

fn section_of(manifest: &str, name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join(manifest)).unwrap();
    let mut inside = false;
    let lines = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            inside = *line == name;
        }
        inside
    });
    lines.map(str::to_owned).collect()
}

#[test]
fn d08_each_package_is_a_dependency_and_used_in_module() {
    let dependencies = section("[dependencies]");
    for (package, name, module) in PACKAGES {
        let line = format!("{package} = ");
        assert!(
            dependencies.iter().any(|l| l.starts_with(&line)),
            "{package} is not in Cargo.toml"
        );
        assert!(is_used(module, name), "{name} is not used in {module}");
    }
}

#[test]
fn d08_packages_of_other_crates_are_used_there() {
    for (folder, package, name) in [
        ("crates/cluster", "tokio", "tokio::"),
        ("crates/limiter", "tokio", "tokio::"),
        ("crates/serve", "pin-project", "pin_project::pin_project"),
        ("crates/serve", "tower-http", "tower_http::"),
        ("crates/store", "serde_yaml", "serde_yaml::"),
    ] {
        let dependencies = section_of(&format!("{folder}/Cargo.toml"), "[dependencies]");
        let line = format!("{package} = ");
        assert!(dependencies.iter().any(|l| l.starts_with(&line)), "{package}");
        assert!(is_used(&format!("{folder}/src"), name), "{name}");
    }
}

#[test]
fn d08_engine_and_quota_use_none_of_the_packages() {
    for name in PACKAGES.map(|(_, name, _)| name).into_iter().chain(["serde_yaml::"]) {
        for module in ["crates/limiter/src/engine", "crates/limiter/src/quota"] {
            assert!(!is_used(module, name), "{name} in {module}");
        }
    }
}

#[test]
fn d08_tower_is_a_dev_dependency_used_by_tests() {
    let tower = |section: &[String]| section.iter().any(|line| line.starts_with("tower = "));
    assert!(tower(&section("[dev-dependencies]")));
    assert!(is_used("tests/it/middleware", "tower::"));
}
