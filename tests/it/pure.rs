//! The engine uses only `core`, `alloc` and the values of `quota`; `quota` uses only `core`,
//! `alloc`, the derives of serde and schemars, jiff in the file of time zones, compact_str in that of
//! keys, and cells for values that are computed once. Tests may use anything.

use crate::module_imports::{code, sources};

/// The files below `crates/limiter/src/quota` that use another crate.
const ZONES: &str = "crates/limiter/src/quota/zone.rs";
const KEY: &str = "crates/limiter/src/quota/key.rs";

#[test]
fn engine_and_quota_use_only_core_and_alloc() {
    let files = sources(&["crates/limiter/src"]);
    let count = |folder: &str| files.iter().filter(|(path, _)| path.starts_with(folder)).count();
    assert!(
        count("crates/limiter/src/engine/") > 10 && count("crates/limiter/src/quota/") > 10,
        "the sources are listed"
    );
    let pure = |path: &str| {
        path.starts_with("crates/limiter/src/engine/")
            || path.starts_with("crates/limiter/src/quota/")
    };
    let pure_files: Vec<_> = files.iter().filter(|(path, _)| pure(path)).collect();
    let modules: Vec<_> = pure_files.iter().map(|(path, _)| module(path)).collect();
    let violations = pure_files.iter().flat_map(|(path, text)| foreign(path, text, &modules));
    let violations: Vec<String> = violations.collect();
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn use_of_std_or_other_crate_is_detected() {
    let violations = |path: &str, text: &str, import: &str| {
        let found = foreign(path, text, &["wait"]);
        assert_eq!(found, [format!("{path}:1: {import}")], "{text}");
    };
    violations("crates/limiter/src/engine/a.rs", "use std::time::Instant;", "std");
    violations("crates/limiter/src/engine/a.rs", "use std::collections::HashMap;", "std");
    violations(
        "crates/limiter/src/engine/a.rs",
        "fn f() -> std :: io :: Result<()> { loop {} }",
        "std",
    );
    violations("crates/limiter/src/engine/a.rs", "use ::std::fmt;", "std");
    violations("crates/limiter/src/engine/a.rs", "use {core::fmt, tokio::time};", "tokio");
    violations("crates/limiter/src/engine/a.rs", "use jiff;", "jiff");
    violations("crates/limiter/src/engine/a.rs", "extern crate libc;", "libc");
    violations(
        "crates/limiter/src/engine/a.rs",
        "use core::{fmt, mem}; use parking_lot as p;",
        "parking_lot",
    );
    violations("crates/limiter/src/engine/a.rs", "fn f() { println!(); }", "println!");
    violations("crates/limiter/src/engine/a.rs", "fn f() { dbg!(1); }", "dbg!");
    violations(
        "crates/limiter/src/engine/a.rs",
        "use core::fmt; use std::io; fn f() -> fmt::Error {}",
        "std",
    );
    violations("crates/limiter/src/engine/a.rs", "use serde::Serialize;", "serde");
    violations("crates/limiter/src/quota/a.rs", "use jiff::Span;", "jiff");
    violations(ZONES, "use jiff::Span; use std::fs;", "std");
}

#[test]
fn use_of_core_alloc_and_own_modules_is_allowed() {
    for text in [
        "use core::fmt; use alloc::{sync::Arc, vec::Vec}; use super::Wait; use crate::quota::Cost;",
        "use super::{wait, Margin}; fn f() -> u64 { wait::f(u64::MAX, Self::X, <u8>::MIN) }",
        "//! use std::fmt;\n/* std::io */ fn f() { vec![1].iter().map(u64::from).sum::<u64>(); }",
        "#![deny(clippy::float_arithmetic)] #[cfg(test)] mod tests { use super::*; }",
        "const A: &str = \"std::io println!\"; fn f() { let extern_ = 1; assert!(matches!(1, 1)); }",
        "fn f(a: u8) -> bool { a != 1 && !(a == 2) } fn g() { if !x { size_of::<u8>(); } }",
        "use core::{fmt, num::NonZero}; fn f(_: fmt::Error) {}",
        "use std::sync::OnceLock;",
        "#[cfg(test)] mod tests { use jiff::Span; }",
    ] {
        assert_eq!(foreign("crates/limiter/src/engine/a.rs", text, &["wait"]), [""; 0], "{text}");
    }
}

/// Returns the crates and macros used by a file, other than `core`, `alloc` and its own.
fn foreign(path: &str, text: &str, modules: &[&str]) -> Vec<String> {
    let code = code(text).replace("use ::", "use ").replace(" ::", "::").replace(":: ", "::");
    let code = code.replace("std::sync::OnceLock;", "core::OnceLock;");
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let imported = imported(code);
    let code = without_groups(code);
    let mut violations = Vec::new();
    for (at, name) in words(&code) {
        let (before, after) = (code[..at].trim_end(), &code[at + name.len()..]);
        let continues = after.starts_with("::") && !after.starts_with("::<");
        let starts_path = (continues && !is_inside(before))
            || ["use", "extern crate"].iter().any(|word| ends_with_word(before, word));
        let own = OWN.contains(&name)
            || modules.contains(&name)
            || imported.contains(&name)
            || name.starts_with(char::is_uppercase)
            || (path.starts_with("crates/limiter/src/quota/") && DERIVES.contains(&name))
            || (path == ZONES && name == "jiff")
            || (path == KEY && name == "compact_str");
        let calls = after.starts_with('!') && !after.starts_with("!=");
        let found = match (starts_path, calls) {
            (true, _) if !own => name.to_owned(),
            (_, true) if !MACROS.contains(&name) => format!("{name}!"),
            _ => continue,
        };
        let line = code[..at].matches('\n').count() + 1;
        violations.push(format!("{path}:{line}: {found}"));
    }
    violations
}

/// Returns the names imported from `core` and `alloc`.
fn imported(code: &str) -> Vec<&str> {
    let uses = code.split("use ").skip(1).filter_map(|rest| rest.split(';').next());
    let fine = uses.filter(|path| path.starts_with("core::") || path.starts_with("alloc::"));
    fine.flat_map(words).map(|(_, name)| name).collect()
}

/// Returns the text without groups in braces after `::`, line for line.
fn without_groups(code: &str) -> String {
    let (mut kept, mut depth) = (String::new(), 0);
    for c in code.chars() {
        match c {
            '{' if depth > 0 || kept.trim_end().ends_with("::") => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '\n' => kept.push(c),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

/// Returns the names, words and numbers with their offsets.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    code.split(move |c| !in_word(c))
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - code.as_ptr() as usize, word))
}

/// Returns true if a name continues a path; `::std` starts one.
fn is_inside(before: &str) -> bool {
    let Some(head) = before.strip_suffix("::") else { return false };
    head.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '>')
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word)
        .is_some_and(|head| !head.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns the name of the module in a file.
fn module(path: &str) -> &str {
    path.trim_end_matches(".rs").rsplit('/').next().unwrap_or(path)
}

/// The crates whose derives the values use.
const DERIVES: [&str; 2] = ["serde", "schemars"];

/// The lower-case names, apart from modules, that may start a path.
const OWN: [&str; 15] = [
    "core", "alloc", "crate", "super", "self", "u8", "u16", "u32", "u64", "u128", "usize", "i64",
    "i128", "f64", "clippy",
];
const MACROS: [&str; 10] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "format_args",
    "cfg",
    "debug_assert",
    "format",
    "matches",
    "vec",
    "write",
];
