//! The pages of the documentation, and the code blocks in them.

use std::fs;
use std::path::{Path, PathBuf};

/// A page of the documentation.
#[derive(Debug)]
pub struct Page {
    /// Its path below the root of the repository.
    pub name: String,
    pub text: String,
}

/// A fenced code block.
#[derive(Debug)]
pub struct Block {
    /// The page and the line of its first fence, for messages.
    pub place: String,
    /// The first word of its info string.
    pub language: String,
    pub text: String,
}

/// All pages for users and contributors: those at the root, in `docs/` and of the packages.
pub fn pages() -> Vec<Page> {
    let root = root();
    let mut names: Vec<String> = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(String::from).into();
    names.extend(["cli", "serve", "simulate"].map(|package| format!("crates/{package}/README.md")));
    let docs = fs::read_dir(root.join("docs")).expect("the folder docs");
    let docs = docs.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    names.extend(docs.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")));
    names.sort();
    let page = |name: String| {
        let text = fs::read_to_string(root.join(&name)).expect("a page");
        Page { name, text }
    };
    names.into_iter().map(page).collect()
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

impl Page {
    /// The fenced code blocks, in order.
    ///
    /// # Panics
    /// If a block has no end.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let Some(info) = line.strip_prefix("```") else { continue };
            let place = format!("{}:{}", self.name, number + 1);
            let language = info.split([',', ' ']).next().unwrap_or_default().to_owned();
            let mut text = String::new();
            loop {
                let (_, line) = lines.next().unwrap_or_else(|| panic!("{place}: no end"));
                if line == "```" {
                    break;
                }
                text.push_str(line);
                text.push('\n');
            }
            blocks.push(Block { place, language, text });
        }
        blocks
    }

    /// The targets of its links and pictures, code left out.
    pub fn links(&self) -> Vec<&str> {
        let mut in_code = false;
        let prose = self.text.lines().filter(|line| {
            let is_fence = line.starts_with("```");
            in_code ^= is_fence;
            !in_code && !is_fence
        });
        let inline = prose.clone().flat_map(|line| {
            line.match_indices("](").map(|(at, _)| &line[at + 2..]).filter_map(|rest| rest.split_once(')'))
        });
        let definitions = prose.filter(|line| line.starts_with('[')).filter_map(|line| line.split_once("]: "));
        inline.map(|(target, _)| target).chain(definitions.map(|(_, target)| target)).collect()
    }
}
