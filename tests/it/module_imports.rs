//! Modules import only modules before them, and time is read in one place.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module and the modules that it may import. The compiler checks the order of the packages.
const MODULES: [(&str, &[&str]); 18] = [
    // Of the limiter's package.
    ("timestamp", &[]),
    ("quota", &[]),
    ("refusal", &["quota"]),
    ("stated", &["quota"]),
    ("engine", &["quota"]),
    ("plan", &["quota", "engine"]),
    ("sync", &[]),
    ("clock", &["sync"]),
    ("answer", &["quota", "refusal", "engine", "plan"]),
    ("event", &["quota", "refusal", "sync", "answer"]),
    ("backend", &["quota", "engine"]),
    // Has no locks and reads no clock.
    ("key", &["quota", "refusal", "stated", "engine", "event", "plan", "answer"]),
    ("limiter", BEFORE_LIMITER),
    ("seam", &["quota", "engine", "key", "event", "answer", "backend", "limiter"]),
    // Of the root package.
    ("doc_pages", &[]),
    ("error_chain", &[]),
    ("middleware", LIMITER_AND_BEFORE),
    ("telemetry", LIMITER_AND_BEFORE),
];
const BEFORE_LIMITER: &[&str] = &[
    "quota", "refusal", "stated", "engine", "sync", "clock", "event", "plan", "answer", "backend",
    "key",
];
const LIMITER_AND_BEFORE: &[&str] =
    &["error_chain", "quota", "engine", "provider", "price", "limiter"];

/// The folders of these modules.
const FOLDERS: [&str; 2] = ["src", "crates/limiter/src"];

/// The module that all others may use, and its value, as the root names it.
const EVERYWHERE: [&str; 2] = ["timestamp", "Timestamp"];

/// The only files that may read a clock: those that allow clippy's `disallowed_methods`.
const CLOCKS: [&str; 3] = [
    "crates/limiter/src/clock/system_clock.rs",
    "crates/limiter/src/clock/tokio_clock.rs",
    "crates/simulate/src/clock.rs",
];

/// The only file that may read the uptime of the machine.
const UPTIME: &str = "crates/limiter/src/clock/boot.rs";

#[test]
fn modules_import_only_earlier_modules() {
    let files = sources(&FOLDERS);
    assert!(
        files.iter().any(|(path, _)| path == "src/lib.rs"),
        "the sources of the crate are listed"
    );
    let violations: Vec<String> =
        files.iter().flat_map(|(path, text)| forbidden_imports(path, text)).collect();
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn only_clock_files_read_time() {
    let reads_clock = |(_, text): &&(String, String)| code(text).contains("disallowed_methods");
    let mut files: Vec<String> =
        sources(&packages()).iter().filter(reads_clock).map(|(path, _)| path.clone()).collect();
    files.sort();
    assert_eq!(files, CLOCKS);
}

/// The uptime of the machine is a clock too.
#[test]
fn only_clock_file_reads_system_uptime() {
    let reads_uptime =
        |(_, text): &&(String, String)| text.contains("/proc/uptime") || text.contains("boot_id\"");
    let files: Vec<String> =
        sources(&packages()).iter().filter(reads_uptime).map(|(path, _)| path.clone()).collect();
    assert_eq!(files, [UPTIME]);
}

#[test]
fn forbidden_import_is_detected() {
    let violations = |path: &str, text: &str, import: &str| {
        let found = forbidden_imports(path, text);
        assert_eq!(found.len(), 1, "{path}: {text}: {found:?}");
        assert!(found[0].contains(import), "{} should contain {import}", found[0]);
    };
    violations(
        "src/quota/cost.rs",
        "\nuse crate::engine::Wait;",
        "src/quota/cost.rs:2: quota -> engine",
    );
    violations(
        "src/engine/bucket.rs",
        "fn f(_: crate::provider::Profile) {}",
        "engine -> provider",
    );
    violations("src/telemetry/mod.rs", "use crate::middleware;", "telemetry -> middleware");
    violations("src/telemetry/mod.rs", "use paceline_store::Yaml;", "telemetry -> store");
    violations(
        "src/limiter/entry.rs",
        "use crate::{quota::Cost,\n  store::Store};",
        "limiter -> store",
    );
    violations(
        "src/limiter/limits.rs",
        "use crate::{engine::Rule, price::Prices};",
        "limiter -> price",
    );
    violations("src/quota/cost.rs", "pub use crate :: engine :: Wait;", "quota -> engine");
    violations("src/engine/wait.rs", "use super::super::limiter::Limiter;", "engine -> limiter");
    violations("src/engine/mod.rs", "use super::limiter::Limiter;", "engine -> limiter");
    violations(
        "src/limiter/a.rs",
        r#"const A: char = '"'; use crate::config::Config;"#,
        "limiter -> config",
    );
    violations("src/limiter/a.rs", "use crate::Limiter;", "limiter -> Limiter");
    violations("src/attic/mod.rs", "", "attic is not a known module");
    violations("src/lib.rs", "pub mod quota;\nfn helper() {}", "src/lib.rs:2");
}

#[test]
fn allowed_import_is_accepted() {
    for (path, text) in [
        ("src/limiter/limits.rs", "use crate::{engine::{Bucket, Rule}, plan::Plan};"),
        ("src/limiter/limiter.rs", "use super::super::limiter::Permit; use super::store;"),
        (
            "src/engine/rule.rs",
            "//! [`x`](crate::limiter)\n/* crate::limiter /* */ crate::config */",
        ),
        (
            "src/engine/rule.rs",
            r##"const A: &str = "crate::config"; const B: &str = r#"" crate::config"#;"##,
        ),
        ("src/engine/rule.rs", "fn f<'a>(a: &'a str) -> &'a str { a } pub(crate) struct A;"),
        (
            "src/telemetry/a.rs",
            "pub(in crate::telemetry) struct A; struct B<'a>(&'a mycrate::cli::C);",
        ),
        (
            "src/lib.rs",
            "//! Docs.\n#![warn(x)]\npub mod config;\npub use limiter::{\n    Limiter,\n};",
        ),
    ] {
        assert_eq!(forbidden_imports(path, text), [""; 0], "{path}: {text}");
    }
}

/// Returns every forbidden import in `text`, the file at `path`.
fn forbidden_imports(path: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let parts: Vec<&str> = path
        .rsplit_once("src/")
        .map_or(path, |(_, path)| path)
        .trim_end_matches(".rs")
        .split('/')
        .collect();
    let module = parts[0];
    if module == "lib" {
        return forbidden_items(path, &code);
    }
    let Some((_, allowed)) = MODULES.iter().find(|(name, _)| *name == module) else {
        return vec![format!("{path}:1: {module} is not a known module")];
    };
    let depth = parts.iter().filter(|name| **name != "mod").count();
    let to_root = vec!["super"; depth].join("::") + "::";
    let mut uses = modules_after(&code, "crate::");
    uses.extend(modules_after(&code, "paceline::"));
    // A package is a module of the same name. Only tests can import the helpers of tests.
    let packages = modules_after(&code, "paceline_");
    uses.extend(packages.into_iter().filter(|(_, name)| name != "testing"));
    let in_limiter = modules_after(&code, "paceline_limiter::");
    uses.extend(in_limiter.into_iter().filter(|(_, name)| name != "seam"));
    // In an inline module the same path leads to the module itself.
    let is_module = |name: &str| MODULES.iter().any(|(module, _)| *module == name);
    uses.extend(modules_after(&code, &to_root).into_iter().filter(|(_, name)| is_module(name)));
    let may_use =
        |used: &str| used == module || EVERYWHERE.contains(&used) || allowed.contains(&used);
    let violations = uses.into_iter().filter(|(_, used)| !may_use(used));
    violations
        .map(|(line, used)| {
            format!(
                "{path}:{line}: {module} -> {used} is not allowed; {module} may use {allowed:?}"
            )
        })
        .collect()
}

/// Returns every line of the crate root that is neither a declaration nor a re-export.
fn forbidden_items(path: &str, code: &str) -> Vec<String> {
    let allowed = ["extern crate alloc;", "pub mod ", "mod ", "pub use ", "#"];
    let mut violations = Vec::new();
    let mut inside = false;
    for (number, line) in code.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !inside && !allowed.iter().any(|start| line.starts_with(start)) {
            let number = number + 1;
            violations.push(format!(
                "{path}:{number}: the crate root only declares and re-exports, but has `{line}`"
            ));
        }
        inside = (inside || line.starts_with("pub use ")) && !line.ends_with(';');
    }
    violations
}

/// Returns the names after `root` in paths, single or in braces, with their lines.
fn modules_after(code: &str, root: &str) -> Vec<(usize, String)> {
    let plain = code.replace(" ::", "::").replace(":: ", "::");
    let mut found = Vec::new();
    for (at, _) in plain.match_indices(root) {
        let before = plain[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let line = plain[..at].matches('\n').count() + 1;
        let rest = &plain[at + root.len()..];
        found.extend(names(rest).into_iter().map(|name| (line, name)));
    }
    found
}

/// Returns the first name of a path, or of each path in a group.
fn names(path: &str) -> Vec<String> {
    let name = |path: &str| -> String {
        path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut names = vec![name(group)];
    let mut depth = 1;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Returns the text with comments, strings and characters blanked, line for line.
pub(crate) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = skipped_length(rest, code.chars().next_back());
        if skipped == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            code.push(' ');
            code.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            rest = &rest[skipped..];
        }
    }
    code
}

/// Returns the length of the comment, string or character at the start of `text`; 0 for code.
fn skipped_length(text: &str, before: Option<char>) -> usize {
    let in_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return comment_length(text);
    }
    if let Some(raw) = text.strip_prefix('r').filter(|_| !in_name || before == Some('b')) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = 2 + hashes;
            return text[body..].find(&end).map_or(text.len(), |at| body + at + end.len());
        }
    }
    match text.as_bytes()[0] {
        b'"' => quoted_length(text, b'"'),
        // Not a lifetime: an escape, or one character and a quote.
        b'\'' if text[1..].starts_with('\\') || text[1..].chars().nth(1) == Some('\'') => {
            quoted_length(text, b'\'')
        }
        _ => 0,
    }
}

fn quoted_length(text: &str, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

/// Returns the length of a block comment, which may nest.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Returns the source folders of all packages but the helpers of tests.
pub(crate) fn packages() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let names = fs::read_dir(crates).expect("the packages can be listed").map(|entry| {
        entry.expect("the packages can be listed").file_name().to_string_lossy().into_owned()
    });
    let folders = names.filter(|name| name != "testing").map(|name| format!("crates/{name}/src"));
    let folders: Vec<_> = folders.chain(["src".to_owned()]).collect();
    assert!(folders.len() > 8, "{folders:?}");
    folders
}

/// Returns every source file below these folders: its path from the workspace root, with `/`, and its
/// text.
pub(crate) fn sources(folders: &[impl AsRef<Path>]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> =
        folders.iter().map(|folder| root.join(folder.as_ref())).collect();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("the sources can be listed");
        for path in entries.map(|entry| entry.expect("the sources can be listed").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).expect("the file lies below the root");
                let name = name.to_string_lossy().replace('\\', "/");
                files.push((name, fs::read_to_string(&path).expect("the source is UTF-8")));
            }
        }
    }
    files
}
