//! Files of a package never import each other, directly or through others.
//!
//! A path leads to the file that defines its first name that isn't a module, through imports of other files. What a
//! file only hands on (`pub use`) is no import of its own. Calls of methods aren't followed.

use std::collections::{BTreeMap, BTreeSet};

use crate::module_imports::{code, packages, sources};

/// The names of a path, from the root of its package.
type Names = Vec<String>;

/// The files of a package, by the names of their modules.
type Files = BTreeMap<Names, File>;

#[derive(Default)]
struct File {
    path: String,
    defined: BTreeSet<String>,
    /// Names that lead to paths.
    named: BTreeMap<String, Names>,
    /// Paths that the file uses itself.
    used: Vec<Names>,
}

#[test]
fn no_files_of_a_package_import_each_other() {
    for package in packages() {
        let circle = circle(&sources(&[&package]));
        assert!(circle.is_empty(), "{package}: these files import each other: {circle:#?}");
    }
}

#[test]
fn circles_are_detected() {
    let found = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(path, text)| (format!("src/{path}"), (*text).to_owned()));
        circle(&files.collect::<Vec<_>>())
    };
    let root = ("lib.rs", "mod a; mod b;");
    let direct =
        [root, ("a.rs", "use crate::b::B; pub struct A;"), ("b.rs", "struct B(super::a::A);")];
    assert_eq!(found(&direct), ["src/a.rs -> src/b.rs", "src/b.rs -> src/a.rs"]);
    let through_parent = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; mod c; pub use b::B; use c::C;"),
        ("a/b.rs", "use super::C; pub struct B;"),
        ("a/c.rs", "fn c() { super::B::new() } pub struct C;"),
    ];
    assert_eq!(found(&through_parent), ["src/a/b.rs -> src/a/c.rs", "src/a/c.rs -> src/a/b.rs"]);
    let child = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; pub struct A; fn a() { b::b() }"),
        ("a/b.rs", "use super::A; pub(super) fn b() {}"),
    ];
    assert_eq!(found(&child), ["src/a/b.rs -> src/a/mod.rs", "src/a/mod.rs -> src/a/b.rs"]);
    let used_too = [
        child[0],
        ("a/mod.rs", "mod b; pub use b::B; struct A(B);"),
        ("a/b.rs", "struct B(super::A);"),
    ];
    assert_eq!(found(&used_too), ["src/a/b.rs -> src/a/mod.rs", "src/a/mod.rs -> src/a/b.rs"]);
    let handed_on = [
        root,
        ("a.rs", "pub(crate) use crate::b::B; struct A;"),
        ("b.rs", "use crate::a::A; struct B;"),
    ];
    assert_eq!(found(&handed_on), [""; 0]);
    let in_text = [
        root,
        ("a.rs", "// crate::b::B\nstruct A(&'static str);"),
        ("b.rs", "use crate::a::A; struct B;"),
    ];
    assert_eq!(found(&in_text), [""; 0]);
}

/// Returns the imports among files that import each other, and among files between them.
fn circle(sources: &[(String, String)]) -> Vec<String> {
    // A program's `main.rs` is a package of its own, which only calls the library's.
    let is_test = |path: &str| {
        path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("src/main.rs")
    };
    let sources = sources.iter().filter(|(path, _)| !is_test(path));
    let modules: BTreeSet<Names> = sources.clone().map(|(path, _)| module(path)).collect();
    let read = |(path, text): &(String, String)| (module(path), read(path, text, &modules));
    let files: Files = sources.map(read).collect();
    let mut imports: Vec<(&Names, Names)> = Vec::new();
    for (module, file) in &files {
        let targets: BTreeSet<Names> =
            file.used.iter().filter_map(|names| defining(&files, names, 8)).collect();
        imports.extend(targets.into_iter().filter(|to| to != module).map(|to| (module, to)));
    }
    // Without the files that import none of the rest, or that none of the rest imports, a circle is left.
    loop {
        let from: BTreeSet<Names> = imports.iter().map(|(from, _)| (*from).clone()).collect();
        let to: BTreeSet<Names> = imports.iter().map(|(_, to)| to.clone()).collect();
        let before = imports.len();
        imports.retain(|(a, b)| to.contains(*a) && from.contains(b));
        if imports.len() == before {
            break;
        }
    }
    let mut imports: Vec<_> =
        imports.iter().map(|(a, b)| format!("{} -> {}", files[*a].path, files[b].path)).collect();
    imports.sort();
    imports
}

/// Returns the names of a file's module.
fn module(path: &str) -> Names {
    let (_, path) = path.rsplit_once("src/").expect("a source file");
    let names = path.trim_end_matches(".rs").split('/').map(str::to_owned);
    names.filter(|name| !["mod", "lib"].contains(&name.as_str())).collect()
}

fn read(path: &str, text: &str, modules: &BTreeSet<Names>) -> File {
    let module = module(path);
    let mut file = File { path: path.to_owned(), ..File::default() };
    let code = code(text);
    let code = code.split("mod tests {").next().unwrap_or_default();
    let (mut rest, mut after) = (String::new(), code);
    let mut handed_on = Vec::new();
    while let Some(at) = word(after, "use") {
        let (before, import) = after.split_at(at);
        let (import, next) = import.split_once(';').unwrap_or((import, ""));
        rest.push_str(before);
        let is_handed_on = before.trim_end().ends_with("pub") || before.trim_end().ends_with(')');
        for (name, names) in imported(&import["use".len()..]) {
            let Some(names) = from_root(&names, &module, modules) else { continue };
            file.named.insert(name.clone(), names.clone());
            match is_handed_on {
                true => handed_on.push((name, names)),
                false => file.used.push(names),
            }
        }
        after = next;
    }
    rest.push_str(after);
    let outer = outer(&rest);
    let words: Vec<&str> = words(&outer).collect();
    let defined = words.windows(2).filter(|pair| ITEMS.contains(&pair[0]));
    file.defined = defined.map(|pair| pair[1].to_owned()).collect();
    let words: Vec<&str> = self::words(&rest).collect();
    let named = words.windows(2).filter(|pair| pair[0] != "mod");
    let words: BTreeSet<&str> = named.map(|pair| pair[1]).collect();
    // A word in lower case may be a variable.
    let is_type = |name: &str| name.starts_with(char::is_uppercase);
    handed_on.retain(|(name, _)| is_type(name) && words.contains(name.as_str()));
    file.used.extend(handed_on.into_iter().map(|(_, names)| names));
    let is_in_path = |c: char| is_in_word(c) || c == ':';
    let paths = rest.split(|c| !is_in_path(c)).filter(|path| path.contains("::"));
    let paths = paths.map(|path| path.split("::").map(str::to_owned).collect::<Names>());
    file.used.extend(paths.filter_map(|path| from_root(&path, &module, modules)));
    file
}

/// Returns the words of a text, lifetimes with their quote.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_in_word(c)).filter(|word| !word.is_empty())
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

/// Returns the text outside of braces.
fn outer(text: &str) -> String {
    let mut depth = 0;
    let is_outer = |c: &char| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        depth == 0
    };
    text.chars().filter(is_outer).collect()
}

/// The keywords before the name of an item.
const ITEMS: [&str; 9] =
    ["struct", "enum", "fn", "trait", "const", "static", "type", "union", "macro_rules"];

/// Returns the place of a word.
fn word(text: &str, word: &str) -> Option<usize> {
    let mut places = text.match_indices(word).map(|(at, _)| at);
    places.find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_in_word) && after.is_some_and(char::is_whitespace)
    })
}

/// Returns the names that an import brings, with their paths.
fn imported(tree: &str) -> Vec<(String, Names)> {
    let tree: String = tree.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((before, group)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((&tree, ""));
        let names = path.trim().split("::").map(|name| name.trim().to_owned());
        let names: Names = names
            .enumerate()
            .filter(|(at, name)| *at == 0 || name != "self")
            .map(|(_, name)| name)
            .collect();
        let last = names.last().filter(|_| name.is_empty()).map_or(name.trim(), String::as_str);
        return vec![(last.to_owned(), names)];
    };
    let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
    let mut depth = 0;
    let parts = group.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| imported(&format!("{}{}", before.trim(), part.trim()))).collect()
}

/// Returns a path from the root of the package; `None` for one of another package.
fn from_root(path: &[String], module: &Names, modules: &BTreeSet<Names>) -> Option<Names> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let (start, rest) = match path[0].as_str() {
        "crate" => (Names::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => (module[..module.len().checked_sub(supers)?].to_vec(), &path[supers..]),
        child => {
            let is_child = modules.contains(&[module.as_slice(), &[child.to_owned()]].concat());
            (is_child.then(|| module.clone())?, path)
        }
    };
    Some([start, rest.to_vec()].concat())
}

/// Returns the module of the file that defines what a path names.
fn defining(files: &Files, path: &Names, steps: u32) -> Option<Names> {
    let longest = (0..=path.len()).rev().map(|end| &path[..end]);
    let module = longest.map(<[String]>::to_vec).find(|names| files.contains_key(names))?;
    let file = &files[&module];
    let named = path.get(module.len()).filter(|name| !file.defined.contains(*name));
    match named.and_then(|name| file.named.get(name)) {
        Some(names) if steps > 0 => {
            let rest = &path[module.len() + 1..];
            defining(files, &[names.as_slice(), rest].concat(), steps - 1)
        }
        _ => Some(module),
    }
}
