use std::io;
use std::path::Path;

use super::environment;
use super::file;
use super::loaded::Loaded;
use super::options::{ListFile, Override};
use crate::check::Check;
use crate::error::{ConfigError, Problem};
use crate::read::{MAX_PROBLEMS, misspelt, read};
use crate::section::{Document, Sections};
use crate::tree::{FieldPath, Key, Node, Origin, Parsed, Position, Source, Value, parse};

/// The layers of a configuration. Values of later layers replace those of earlier ones.
#[derive(Debug)]
pub(super) struct Layers {
    tree: Node,
    problems: Vec<Problem>,
    sections: Sections,
}

impl Layers {
    /// Creates an empty configuration. `sections` are read in addition to those of the library.
    pub(super) fn new(sections: Sections) -> Self {
        let tree = Node::new(Origin::BuiltIn, Value::Map(Vec::new()));
        Self { tree, problems: Vec::new(), sections }
    }

    /// Adds the text of a file.
    pub(super) fn add_text(&mut self, text: &str, source: &Source) {
        self.add_text_with(&self.sections.names(), text, source);
    }

    /// Adds the text of a file that may have these sections.
    ///
    /// A file of another program may contain secrets, so errors about such a file, and about invalid
    /// YAML, contain positions only.
    fn add_text_with(&mut self, sections: &[&str], text: &str, source: &Source) {
        let Parsed { root, mut problems } = parse(text, source);
        let foreign = foreign_entries(&root, sections);
        if !foreign.is_empty() || root.is_removed() {
            problems.iter_mut().for_each(|problem| problem.path.clear());
        }
        self.problems.extend(problems);
        if !foreign.is_empty() {
            self.problems.extend(foreign);
            self.tree = Node::new(source.whole(), Value::Removed);
            return;
        }
        // A file can be empty because it is being written, so refuse it instead of removing all limits.
        self.tree = match root.value {
            Value::Null => {
                self.unusable(source.whole(), "the file is empty; write `{}` for the defaults")
            }
            _ => root,
        };
    }

    /// Adds the result of reading a file.
    pub(super) fn add_file(&mut self, path: &Path, read: io::Result<Vec<u8>>) {
        self.add_file_with(&self.sections.names(), path, read);
    }

    fn add_file_with(&mut self, sections: &[&str], path: &Path, read: io::Result<Vec<u8>>) {
        let name = path.display().to_string();
        match file::decode(read) {
            Ok(text) => self.add_text_with(sections, &text, &Source::File(name.into())),
            Err((line, message)) => {
                let position = line.map(|line| Position { line, column: 1 });
                let origin = Origin::File { file: name.into(), position };
                self.tree = self.unusable(origin, message);
            }
        }
    }

    /// Replaces a list with the list of a separate file.
    pub(super) fn add_list_file(&mut self, file: &ListFile, read: io::Result<Vec<u8>>) {
        let ListFile { path, entry, at } = file;
        let mut list_layers = Self::new(Sections::new());
        list_layers.add_file_with(&[entry], path, read);
        let Self { tree, mut problems, .. } = list_layers;
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

    /// Reports an unusable file. Returns the tree to use in its place, which later layers don't change.
    fn unusable(&mut self, origin: Origin, message: impl Into<String>) -> Node {
        self.problems.push(Problem::new(origin.clone(), &FieldPath::default(), message));
        Node::new(origin, Value::Removed)
    }

    /// Adds an environment variable if it belongs to the configuration. An empty variable is ignored,
    /// since scripts and Compose files use empty values for variables that are not set.
    pub(super) fn add_variable(&mut self, name: &str, value: &str) {
        if value.trim().is_empty() {
            return;
        }
        let source = Source::Environment(name.into());
        match environment::path(name, &self.sections) {
            Ok(Some(path)) => self.add_value(&source, &path, value),
            Ok(None) => {}
            Err(message) => {
                self.problems.push(Problem::new(source.whole(), &FieldPath::default(), message))
            }
        }
    }

    /// Adds a value that a flag sets.
    pub(super) fn add_flag(&mut self, flag: &Override) {
        self.add_value(&Source::Flag(flag.flag.as_str().into()), &flag.path, &flag.value);
    }

    fn add_value(&mut self, source: &Source, path: &[String], value: &str) {
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
    pub(super) fn load(self, folder: &Path) -> Result<Loaded, ConfigError> {
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

/// Returns a problem for each unknown entry if the file belongs to another program. A file does so if it
/// has none of these sections, even misspelt, or only sections whose value is empty or a string.
fn foreign_entries(root: &Node, sections: &[&str]) -> Vec<Problem> {
    let problem = |origin: &Origin, message: &str| {
        let message = format!("{message} {}", sections.join(", "));
        Problem::new(origin.clone(), &FieldPath::default(), message)
    };
    let Value::Map(entries) = &root.value else {
        let is_empty = matches!(root.value, Value::Null | Value::Removed);
        return if is_empty { Vec::new() } else { vec![problem(&root.origin, "must be a map of")] };
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
