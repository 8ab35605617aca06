use std::collections::HashMap;

use super::field_path::{FieldPath, Segment};
use super::key::Key;
use super::origin::Origin;

/// A value and its origin.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) origin: Origin,
    pub(crate) value: Value,
}

/// A value of YAML.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A missing value, or `null`.
    Null,
    Bool(bool),
    /// A number, in a notation that Rust's parsers accept.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
    /// An invalid value that was removed, so that the rest can be read.
    Removed,
}

impl Node {
    pub(crate) fn new(origin: Origin, value: Value) -> Self {
        Self { origin, value }
    }

    pub(crate) fn is_removed(&self) -> bool {
        matches!(self.value, Value::Removed)
    }

    /// Returns the number of values, including this one.
    pub(crate) fn size(&self) -> usize {
        match &self.value {
            Value::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Value::Map(entries) => 1 + entries.iter().map(|(_, node)| node.size()).sum::<usize>(),
            _ => 1,
        }
    }

    /// Returns the number of nested levels, including this one.
    pub(crate) fn depth(&self) -> usize {
        let deepest = match &self.value {
            Value::List(items) => items.iter().map(Self::depth).max(),
            Value::Map(entries) => entries.iter().map(|(_, node)| node.depth()).max(),
            _ => None,
        };
        1 + deepest.unwrap_or(0)
    }

    /// Returns the entries of a map by name; empty for other values.
    pub(crate) fn entries(&self) -> HashMap<&str, &Self> {
        match &self.value {
            Value::Map(entries) => {
                entries.iter().map(|(key, node)| (key.name.as_str(), node)).collect()
            }
            _ => HashMap::new(),
        }
    }

    /// Returns the origin of the value at this path, or of its closest parent that exists.
    pub(crate) fn origin_of(&self, path: &FieldPath) -> &Origin {
        let mut node = self;
        for step in path.as_slice() {
            match node.child(step) {
                Some(child) => node = child,
                None => break,
            }
        }
        &node.origin
    }

    /// Returns the origin of the name of the entry at this path.
    pub(crate) fn name_origin(&self, path: &FieldPath) -> Option<&Origin> {
        let (last, parents) = path.as_slice().split_last()?;
        let node = parents.iter().try_fold(self, |node, step| node.child(step))?;
        match (&node.value, last) {
            (Value::Map(entries), Segment::Key(name)) => {
                entries.iter().find(|(key, _)| key.name == *name).map(|(key, _)| &key.origin)
            }
            _ => None,
        }
    }

    /// Removes the value at this path.
    pub(crate) fn remove(&mut self, path: &FieldPath) {
        let found = path.as_slice().iter().try_fold(self, |node, step| node.child_mut(step));
        if let Some(node) = found {
            node.value = Value::Removed;
        }
    }

    /// Sets the value at this path, and creates missing maps on the way.
    pub(crate) fn put(&mut self, keys: &[String], key: &Origin, node: Self) {
        let Some((first, rest)) = keys.split_first() else {
            *self = node;
            return;
        };
        if !matches!(self.value, Value::Map(_)) {
            *self = Self::new(key.clone(), Value::Map(Vec::new()));
        }
        let Value::Map(entries) = &mut self.value else { return };
        let at = entries.iter().position(|(key, _)| key.name == *first).unwrap_or_else(|| {
            let name = Key { name: first.clone(), origin: key.clone() };
            entries.push((name, Self::new(key.clone(), Value::Null)));
            entries.len() - 1
        });
        entries[at].1.put(rest, key, node);
    }

    /// Returns the value of an entry or item.
    pub(crate) fn child(&self, step: &Segment) -> Option<&Self> {
        match (&self.value, step) {
            (Value::Map(entries), Segment::Key(name)) => {
                entries.iter().find(|(key, _)| key.name == *name).map(|(_, node)| node)
            }
            (Value::List(items), Segment::Item(item)) => items.get(*item),
            _ => None,
        }
    }

    fn child_mut(&mut self, step: &Segment) -> Option<&mut Self> {
        match (&mut self.value, step) {
            (Value::Map(entries), Segment::Key(name)) => {
                entries.iter_mut().find(|(key, _)| key.name == *name).map(|(_, node)| node)
            }
            (Value::List(items), Segment::Item(item)) => items.get_mut(*item),
            _ => None,
        }
    }
}
