use std::io;
use std::path::Path;

use super::environment;
use super::file;
use super::loaded::Loaded;
use super::options::Override;
use crate::config::check::Check;
use crate::config::error::{ConfigError, Problem};
use crate::config::fields::Fields;
use crate::config::read::read;
use crate::config::tree::{Node, Origin, Parsed, Position, Source, Steps, Value, parse};

/// What was said so far, each layer over those before.
#[derive(Debug)]
pub(in crate::config) struct Layers {
    tree: Node,
    problems: Vec<Problem>,
}

impl Default for Layers {
    fn default() -> Self {
        let tree = Node::new(Origin::BuiltIn, Value::Map(Vec::new()));
        Self { tree, problems: Vec::new() }
    }
}

impl Layers {
    /// The whole of a text.
    pub(in crate::config) fn text(&mut self, text: &str, source: &Source) {
        let Parsed { root, problems } = parse(text, source);
        self.problems.extend(problems);
        // As a file is that somebody is about to write, comments or not: to take it for "no limits"
        // would be wrong.
        self.tree = match root.value {
            Value::Null => self.nothing(source.whole(), "is empty; write {} for the defaults"),
            _ => root,
        };
    }

    /// What was read of a file.
    pub(super) fn file(&mut self, path: &Path, read: io::Result<Vec<u8>>) {
        let name = path.display().to_string();
        match file::text(read) {
            Ok(text) => self.text(&text, &Source::File(name.into())),
            Err((line, what)) => {
                let position = line.map(|line| Position { line, column: 1 });
                let origin = Origin::File { file: name.into(), position };
                self.tree = self.nothing(origin, what);
            }
        }
    }

    /// What is left of a file that can't be used: nothing that the layers over it could change.
    fn nothing(&mut self, origin: Origin, what: impl Into<String>) -> Node {
        self.problems.push(Problem::new(origin.clone(), &Steps::default(), what));
        Node::new(origin, Value::Removed)
    }

    /// An environment variable, if it is about the configuration. An empty one is none: that is how
    /// many a script and Compose file say that there is no such variable.
    pub(super) fn variable(&mut self, name: &str, value: &str) {
        let path = environment::path(name, &Fields::SECTIONS);
        if let Some(path) = path.filter(|_| !value.trim().is_empty()) {
            self.value(&Source::Environment(name.into()), &path, value);
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
        let Self { tree, mut problems } = self;
        if tree.is_removed() {
            return Err(ConfigError::new(problems));
        }
        let reading = read::<Fields>(&tree);
        problems.extend(reading.problems);
        let found = reading.value.map(|fields| {
            let (config, wrong) = Check::new(&tree, &reading.removed, folder).config(&fields);
            problems.extend(wrong);
            (config, fields)
        });
        match found {
            Some((config, fields)) if problems.is_empty() => Ok(Loaded::new(config, tree, fields)),
            _ => Err(ConfigError::new(problems)),
        }
    }
}
