//! The pages of the documentation and their code blocks.

use std::fs;
use std::path::{Path, PathBuf};

/// A page of the documentation.
#[derive(Debug)]
pub struct Page {
    /// The path, relative to the root of the repository.
    pub name: String,
    pub text: String,
}

/// A fenced code block.
#[derive(Debug)]
pub struct Block {
    /// The page and line of the opening fence, for messages.
    pub place: String,
    /// The first word of its info string.
    pub language: String,
    pub text: String,
}

/// Reads all pages for users and contributors: at the root, in `docs/`, and the READMEs of packages.
pub fn pages() -> Vec<Page> {
    let root = root();
    let mut names: Vec<String> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(String::from).into();
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

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

impl Page {
    /// Returns the fenced code blocks, in order.
    ///
    /// # Panics
    /// If a block has no closing fence.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let Some(info) = line.strip_prefix("```") else { continue };
            let place = format!("{}:{}", self.name, number + 1);
            let language = info.split([',', ' ']).next().unwrap_or_default().to_owned();
            let mut text = String::new();
            loop {
                let (_, line) = lines.next().unwrap_or_else(|| panic!("{place}: no closing fence"));
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

    /// Returns the targets of links and pictures outside code blocks.
    pub fn links(&self) -> Vec<&str> {
        let (mut links, mut in_code) = (Vec::new(), false);
        for line in self.text.lines() {
            if line.starts_with("```") {
                in_code = !in_code;
            } else if !in_code {
                let inline = line.match_indices("](").map(|(at, _)| &line[at + 2..]);
                links.extend(inline.filter_map(|rest| Some(rest.split_once(')')?.0)));
                let definition = line.split_once("]: ").filter(|_| line.starts_with('['));
                links.extend(definition.map(|(_, target)| target));
            }
        }
        links
    }
}
