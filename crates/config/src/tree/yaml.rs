use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use super::anchors::{Anchors, MAX_DEPTH, too_deep};
use super::field_path::FieldPath;
use super::key::Key;
use super::node::{Node, Value};
use super::origin::{Origin, Position};
use super::scalar;
use crate::error::Problem;

/// The source of a YAML text.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    File(Arc<str>),
    Environment(Arc<str>),
    Flag(Arc<str>),
}

/// The result of parsing YAML, without invalid values. `root` is `Removed` if there is no document.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Node,
    pub(crate) problems: Vec<Problem>,
}

/// Parses one document of YAML 1.2 (core schema) with a bounded number of values.
pub(crate) fn parse(text: &str, source: &Source) -> Parsed {
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().count().max(1);
    let mut builder = TreeBuilder { lines, ..TreeBuilder::new(source) };
    match builder.read(text) {
        Ok(root) => Parsed { root, problems: builder.problems },
        Err(problem) => {
            builder.problems.push(problem);
            let root = Node::new(source.whole(), Value::Removed);
            Parsed { root, problems: builder.problems }
        }
    }
}

impl Source {
    /// Returns the origin of the text as a whole.
    pub(crate) fn whole(&self) -> Origin {
        match self {
            Self::File(file) => Origin::File { file: Arc::clone(file), position: None },
            Self::Environment(name) => Origin::Environment(Arc::clone(name)),
            Self::Flag(name) => Origin::Flag(Arc::clone(name)),
        }
    }

    fn at(&self, marker: Marker, lines: usize) -> Origin {
        match self.whole() {
            Origin::File { file, .. } => {
                // The end of a file is on its last line.
                let past = marker.line() > lines;
                let (line, column) = (marker.line().clamp(1, lines), marker.col() + 1);
                let position = Position { line, column: if past { 1 } else { column } };
                Origin::File { file, position: Some(position) }
            }
            other => other,
        }
    }
}

/// Builds a tree from the events of the parser.
struct TreeBuilder<'a> {
    source: &'a Source,
    lines: usize,
    open: Vec<OpenNode>,
    root: Option<Node>,
    anchors: Anchors,
    problems: Vec<Problem>,
}

/// A list or map that is still open.
struct OpenNode {
    origin: Origin,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, names: HashMap<String, usize>, key: Option<Key> },
}

impl<'a> TreeBuilder<'a> {
    fn new(source: &'a Source) -> Self {
        Self {
            source,
            lines: 1,
            open: Vec::new(),
            root: None,
            anchors: Anchors::default(),
            problems: Vec::new(),
        }
    }

    fn read(&mut self, text: &str) -> Result<Node, Problem> {
        let mut documents = 0;
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| {
                let at = self.at(*error.marker());
                // The message may quote a character of a secret.
                let message = error.info().split(": `").next().unwrap_or_default();
                Problem::new(at, &FieldPath::default(), format!("invalid YAML: {message}"))
            })?;
            if matches!(event, Event::DocumentStart(_)) {
                documents += 1;
                if documents > 1 {
                    return Err(self.problem(span.start, "more than one document; keep only one"));
                }
            }
            let result = self.add_event(event, span.start);
            result.map_err(|message| self.problem(span.start, message))?;
        }
        let null = || Node::new(self.source.whole(), Value::Null);
        Ok(self.root.take().unwrap_or_else(null))
    }

    fn add_event(&mut self, event: Event<'_>, marker: Marker) -> Result<(), String> {
        let origin = self.at(marker);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.anchors.count(1)?;
                if self.expects_key() {
                    return self.set_key(text, style, origin);
                }
                let node = Node::new(origin, resolve(text, style, tag.as_deref())?);
                self.anchors.define(anchor, &node)?;
                self.add(node)
            }
            Event::Alias(anchor) if !self.expects_key() => {
                let node = self.anchors.resolve(anchor, self.open.len())?;
                self.add(node)
            }
            Event::Alias(_) => Err("an alias can't be a key".to_owned()),
            Event::SequenceStart(anchor, tag) => {
                self.open(origin, anchor, tag.as_deref(), Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let (entries, names) = (Vec::new(), HashMap::new());
                let map = Content::Map { entries, names, key: None };
                self.open(origin, anchor, tag.as_deref(), map)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            _ => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenNode { content: Content::Map { key: None, .. }, .. }))
    }

    fn open(
        &mut self,
        origin: Origin,
        anchor: usize,
        tag: Option<&Tag>,
        content: Content,
    ) -> Result<(), String> {
        self.anchors.count(1)?;
        if tag.is_some() {
            return Err("tags (!) are not supported; remove the tag".to_owned());
        }
        if self.expects_key() {
            return Err("a key must be a string".to_owned());
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.open.push(OpenNode { origin, anchor, content });
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(OpenNode { origin, anchor, content }) = self.open.pop() else { return Ok(()) };
        let value = match content {
            Content::List(items) => Value::List(items),
            Content::Map { entries, .. } => Value::Map(entries),
        };
        let node = Node::new(origin, value);
        self.anchors.define(anchor, &node)?;
        self.add(node)
    }

    fn set_key(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        origin: Origin,
    ) -> Result<(), String> {
        if style == ScalarStyle::Plain && text == "<<" {
            return Err("merge keys (<<) are not part of YAML 1.2; repeat the entries".to_owned());
        }
        if style == ScalarStyle::Plain && text.is_empty() {
            return Err("an entry without a key".to_owned());
        }
        if let Some(OpenNode { content: Content::Map { key, .. }, .. }) = self.open.last_mut() {
            *key = Some(Key { name: text.into_owned(), origin });
        }
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<(), String> {
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map { entries, names, key }) => {
                let Some(key) = key.take() else { return Ok(()) };
                match names.get(&key.name) {
                    Some(first) => {
                        let first = entries[*first].0.origin.clone();
                        self.report_duplicate(&key, &first);
                    }
                    None => {
                        names.insert(key.name.clone(), entries.len());
                        entries.push((key, node));
                    }
                }
            }
        }
        Ok(())
    }

    fn report_duplicate(&mut self, key: &Key, first: &Origin) {
        let open = self.open.iter().filter_map(|open| match &open.content {
            Content::Map { key, .. } => key.as_ref().map(|key| key.name.as_str()),
            Content::List(_) => None,
        });
        let path = FieldPath::new(open).key(&key.name);
        let line =
            first.position().map_or(String::new(), |at| format!(" (first on line {})", at.line));
        let message = format!("duplicate key{line}; remove one");
        self.problems.push(Problem::new(key.origin.clone(), &path, message));
    }

    fn at(&self, marker: Marker) -> Origin {
        self.source.at(marker, self.lines)
    }

    fn problem(&self, marker: Marker, message: impl Into<String>) -> Problem {
        Problem::new(self.at(marker), &FieldPath::default(), message)
    }
}

/// Resolves a scalar by the core schema.
fn resolve(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {}
        Some(_) => return Err("tags (!) are not supported; remove the tag".to_owned()),
        None if style == ScalarStyle::Plain => return Ok(scalar::resolve(&text)),
        None => {}
    }
    Ok(Value::Text(text.into_owned()))
}
