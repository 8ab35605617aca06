use std::io;
use std::path::Path;

use super::environment;
use super::file;
use super::loaded::Loaded;
use super::options::{ListFile, Override};
use crate::config::check::Check;
use crate::config::error::{ConfigError, Problem};
use crate::config::read::{MOST_PROBLEMS, misspelt, read};
use crate::config::section::{Document, Sections};
use crate::config::tree::{Key, Node, Origin, Parsed, Position, Source, Steps, Value, parse};

/// What was said so far, each layer over those before.
#[derive(Debug)]
pub(in crate::config) struct Layers {
    tree: Node,
    problems: Vec<Problem>,
    sections: Sections,
}

impl Layers {
    /// No layer yet. `sections` are read in addition to those of the library.
    pub(in crate::config) fn new(sections: Sections) -> Self {
        let tree = Node::new(Origin::BuiltIn, Value::Map(Vec::new()));
        Self { tree, problems: Vec::new(), sections }
    }

    /// The whole of a text.
    pub(in crate::config) fn text(&mut self, text: &str, source: &Source) {
        self.text_of(&self.sections.names(), text, source);
    }

    /// The whole of a text that may have these sections.
    ///
    /// One of another program may be full of secrets: of it, and of what is no YAML, only places are
    /// told.
    fn text_of(&mut self, sections: &[&str], text: &str, source: &Source) {
        let Parsed { root, mut problems } = parse(text, source);
        let foreign = foreign(&root, sections);
        if !foreign.is_empty() || root.is_removed() {
            problems.iter_mut().for_each(|problem| problem.path.clear());
        }
        self.problems.extend(problems);
        if !foreign.is_empty() {
            self.problems.extend(foreign);
            self.tree = Node::new(source.whole(), Value::Removed);
            return;
        }
        // As a file is that somebody is about to write, comments or not: to take it for "no limits"
        // would be wrong.
        self.tree = match root.value {
            Value::Null => self.nothing(source.whole(), "is empty; write {} for the defaults"),
            _ => root,
        };
    }

    /// What was read of a file.
    pub(super) fn file(&mut self, path: &Path, read: io::Result<Vec<u8>>) {
        self.file_of(&self.sections.names(), path, read);
    }

    fn file_of(&mut self, sections: &[&str], path: &Path, read: io::Result<Vec<u8>>) {
        let name = path.display().to_string();
        match file::text(read) {
            Ok(text) => self.text_of(sections, &text, &Source::File(name.into())),
            Err((line, what)) => {
                let position = line.map(|line| Position { line, column: 1 });
                let origin = Origin::File { file: name.into(), position };
                self.tree = self.nothing(origin, what);
            }
        }
    }

    /// Replaces a list by the one that was read from its own file.
    pub(super) fn list_file(&mut self, file: &ListFile, read: io::Result<Vec<u8>>) {
        let ListFile { path, entry, at } = file;
        let mut own = Self::new(Sections::new());
        own.file_of(&[entry], path, read);
        let Self { tree, mut problems, .. } = own;
        let entries = tree.entries();
        for (name, node) in entries.iter().filter(|(name, _)| *name != entry) {
            let what = format!("only `{entry}` can stand in this file");
            problems.push(Problem::new(node.origin.clone(), &Steps::to([*name]), what));
        }
        let list = entries.get(entry.as_str()).copied().cloned().map(without_zeros);
        if let Some(list) = list.filter(|_| !self.tree.is_removed()) {
            self.tree.put(at, &tree.origin, list);
        }
        self.problems.extend(problems);
    }

    /// What is left of a file that can't be used: nothing that the layers over it could change.
    fn nothing(&mut self, origin: Origin, what: impl Into<String>) -> Node {
        self.problems.push(Problem::new(origin.clone(), &Steps::default(), what));
        Node::new(origin, Value::Removed)
    }

    /// An environment variable, if it is about the configuration. An empty one is none: that is how
    /// many a script and Compose file say that there is no such variable.
    pub(super) fn variable(&mut self, name: &str, value: &str) {
        if value.trim().is_empty() {
            return;
        }
        let source = Source::Environment(name.into());
        match environment::path(name, &self.sections) {
            Ok(Some(path)) => self.value(&source, &path, value),
            Ok(None) => {}
            Err(what) => self.problems.push(Problem::new(source.whole(), &Steps::default(), what)),
        }
    }

    pub(super) fn flag(&mut self, flag: &Override) {
        self.value(&Source::Flag(flag.flag.as_str().into()), &flag.path, &flag.value);
    }

    fn value(&mut self, source: &Source, path: &[String], value: &str) {
        let Parsed { root, problems } = parse(value, source);
        let steps = Steps::to(path.iter().map(String::as_str));
        self.problems.extend(problems.into_iter().map(|mut problem| {
            problem.path = steps.to_string();
            problem
        }));
        if !root.is_removed() && !self.tree.is_removed() {
            self.tree.put(path, &source.whole(), root);
        }
    }

    /// The configuration that all layers say together.
    pub(in crate::config) fn load(self, folder: &Path) -> Result<Loaded, ConfigError> {
        let Self { tree, mut problems, sections } = self;
        if tree.is_removed() {
            return Err(ConfigError::new(problems));
        }
        let reading = read(&tree, |tree| Document::read(tree, &sections));
        problems.extend(reading.problems);
        let found = reading.value.map(|document| {
            let mut check = Check::new(&tree, &reading.removed, folder);
            let mut config = check.config(&document.fields);
            config.sections = document.check(&sections, &mut check);
            problems.extend(check.into_problems());
            (config, document)
        });
        match found {
            Some((config, document)) if problems.is_empty() => {
                Ok(Loaded::new(config, tree, document))
            }
            _ => Err(ConfigError::new(problems)),
        }
    }
}

/// The entries of a text that is of another program: none of these sections, nor one misspelt, is in
/// it with more than a text, and something else is.
fn foreign(root: &Node, sections: &[&str]) -> Vec<Problem> {
    let problem = |origin: &Origin, what: &str| {
        let what = format!("{what} {}", sections.join(", "));
        Problem::new(origin.clone(), &Steps::default(), what)
    };
    let Value::Map(entries) = &root.value else {
        let is_read = matches!(root.value, Value::Null | Value::Removed);
        return if is_read { Vec::new() } else { vec![problem(&root.origin, "must be a map of")] };
    };
    let is_known = |key: &Key| misspelt(&key.name, sections).is_some();
    let is_text = |node: &Node| matches!(node.value, Value::Text(_) | Value::Null);
    if entries.iter().any(|(key, node)| is_known(key) && !is_text(node)) {
        return Vec::new();
    }
    let unknown = entries.iter().filter(|(key, _)| !is_known(key)).take(MOST_PROBLEMS);
    unknown.map(|(key, _)| problem(&key.origin, "unknown section; allowed:")).collect()
}

/// The list without the fields of its items that are 0.
fn without_zeros(mut list: Node) -> Node {
    let is_zero = |node: &Node| matches!(&node.value, Value::Number(number) if number == "0");
    if let Value::List(items) = &mut list.value {
        for item in items {
            if let Value::Map(entries) = &mut item.value {
                entries.retain(|(_, node)| !is_zero(node));
            }
        }
    }
    list
}
