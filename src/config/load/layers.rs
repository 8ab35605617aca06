use std::io;
use std::path::Path;

use super::environment;
use super::file;
use super::loaded::Loaded;
use super::options::{ListFile, Override};
use crate::config::check::Check;
use crate::config::error::{ConfigError, Problem};
use crate::config::read::{MAX_PROBLEMS, misspelt, read};
use crate::config::section::{Document, Sections};
use crate::config::tree::{FieldPath, Key, Node, Origin, Parsed, Position, Source, Value, parse};

/// The layers that were added so far: later values replace earlier ones.
#[derive(Debug)]
pub(in crate::config) struct Layers {
    tree: Node,
    problems: Vec<Problem>,
    sections: Sections,
}

impl Layers {
    /// Creates a set without layers. `sections` are read in addition to those of the library.
    pub(in crate::config) fn new(sections: Sections) -> Self {
        let tree = Node::new(Origin::BuiltIn, Value::Map(Vec::new()));
        Self { tree, problems: Vec::new(), sections }
    }

    /// Adds a file by its text.
    pub(in crate::config) fn text(&mut self, text: &str, source: &Source) {
        self.text_of(&self.sections.names(), text, source);
    }

    /// Adds a file by its text, which may have these sections.
    ///
    /// The file of another program may contain secrets. Errors about it, and about invalid YAML, state
    /// positions only.
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
        // A file is empty while it is being written, so empty doesn't mean that there are no limits.
        self.tree = match root.value {
            Value::Null => {
                self.unusable(source.whole(), "the file is empty; write `{}` for the defaults")
            }
            _ => root,
        };
    }

    /// Adds a file by the result of reading it.
    pub(super) fn file(&mut self, path: &Path, read: io::Result<Vec<u8>>) {
        self.file_of(&self.sections.names(), path, read);
    }

    fn file_of(&mut self, sections: &[&str], path: &Path, read: io::Result<Vec<u8>>) {
        let name = path.display().to_string();
        match file::text(read) {
            Ok(text) => self.text_of(sections, &text, &Source::File(name.into())),
            Err((line, message)) => {
                let position = line.map(|line| Position { line, column: 1 });
                let origin = Origin::File { file: name.into(), position };
                self.tree = self.unusable(origin, message);
            }
        }
    }

    /// Replaces a list by that of a separate file.
    pub(super) fn list_file(&mut self, file: &ListFile, read: io::Result<Vec<u8>>) {
        let ListFile { path, entry, at } = file;
        let mut own = Self::new(Sections::new());
        own.file_of(&[entry], path, read);
        let Self { tree, mut problems, .. } = own;
        let entries = tree.entries();
        for (name, node) in entries.iter().filter(|(name, _)| *name != entry) {
            let message = format!("not allowed in this file, which may only have `{entry}`");
            problems.push(Problem::new(node.origin.clone(), &FieldPath::new([*name]), message));
        }
        let list = entries.get(entry.as_str()).copied().cloned().map(without_zeros);
        if let Some(list) = list.filter(|_| !self.tree.is_removed()) {
            self.tree.put(at, &tree.origin, list);
        }
        self.problems.extend(problems);
    }

    /// Reports an unusable file, and returns the tree in its place, which later layers don't change.
    fn unusable(&mut self, origin: Origin, message: impl Into<String>) -> Node {
        self.problems.push(Problem::new(origin.clone(), &FieldPath::default(), message));
        Node::new(origin, Value::Removed)
    }

    /// Adds an environment variable if it belongs to the configuration. An empty one is ignored, since
    /// scripts and Compose files use empty values for variables that are not set.
    pub(super) fn variable(&mut self, name: &str, value: &str) {
        if value.trim().is_empty() {
            return;
        }
        let source = Source::Environment(name.into());
        match environment::path(name, &self.sections) {
            Ok(Some(path)) => self.value(&source, &path, value),
            Ok(None) => {}
            Err(message) => {
                self.problems.push(Problem::new(source.whole(), &FieldPath::default(), message))
            }
        }
    }

    pub(super) fn flag(&mut self, flag: &Override) {
        self.value(&Source::Flag(flag.flag.as_str().into()), &flag.path, &flag.value);
    }

    fn value(&mut self, source: &Source, path: &[String], value: &str) {
        let Parsed { root, problems } = parse(value, source);
        let field = FieldPath::new(path.iter().map(String::as_str));
        self.problems.extend(problems.into_iter().map(|mut problem| {
            problem.path = field.to_string();
            problem
        }));
        if !root.is_removed() && !self.tree.is_removed() {
            self.tree.put(path, &source.whole(), root);
        }
    }

    /// Returns the configuration of all layers.
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

/// Returns a problem for each entry of a file that belongs to another program: it has unknown entries,
/// and none of these sections, even misspelt, with more than a string.
fn foreign(root: &Node, sections: &[&str]) -> Vec<Problem> {
    let problem = |origin: &Origin, message: &str| {
        let message = format!("{message} {}", sections.join(", "));
        Problem::new(origin.clone(), &FieldPath::default(), message)
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
    let unknown = entries.iter().filter(|(key, _)| !is_known(key)).take(MAX_PROBLEMS);
    unknown.map(|(key, _)| problem(&key.origin, "unknown section; allowed:")).collect()
}

/// Returns the list without the fields of its items that are 0.
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
