use std::collections::HashMap;

use super::key::Key;
use super::origin::Origin;
use super::steps::{Step, Steps};

/// A value, and where it was said.
#[derive(Debug, Clone)]
pub(in crate::config) struct Node {
    pub(in crate::config) origin: Origin,
    pub(in crate::config) value: Value,
}

/// What YAML can say.
#[derive(Debug, Clone)]
pub(in crate::config) enum Value {
    /// Nothing, or `null`.
    Null,
    Bool(bool),
    /// A number as it is written, in a form that Rust's parsers take.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
    /// What was found wrong, so that the rest can be read without it.
    Removed,
}

impl Node {
    pub(in crate::config) fn new(origin: Origin, value: Value) -> Self {
        Self { origin, value }
    }

    pub(in crate::config) fn is_removed(&self) -> bool {
        matches!(self.value, Value::Removed)
    }

    /// How many values this is, itself included.
    pub(in crate::config) fn size(&self) -> usize {
        match &self.value {
            Value::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Value::Map(entries) => 1 + entries.iter().map(|(_, node)| node.size()).sum::<usize>(),
            _ => 1,
        }
    }

    /// How many values lie within each other, itself included.
    pub(in crate::config) fn depth(&self) -> usize {
        let deepest = match &self.value {
            Value::List(items) => items.iter().map(Self::depth).max(),
            Value::Map(entries) => entries.iter().map(|(_, node)| node.depth()).max(),
            _ => None,
        };
        1 + deepest.unwrap_or(0)
    }

    /// The entries of a map, by name; of anything else, none.
    pub(in crate::config) fn entries(&self) -> HashMap<&str, &Self> {
        match &self.value {
            Value::Map(entries) => {
                entries.iter().map(|(key, node)| (key.name.as_str(), node)).collect()
            }
            _ => HashMap::new(),
        }
    }

    /// Where the value at the end of this way was said, or else what it would be in.
    pub(in crate::config) fn origin_of(&self, steps: &Steps) -> &Origin {
        let mut node = self;
        for step in steps.as_slice() {
            match node.child(step) {
                Some(child) => node = child,
                None => break,
            }
        }
        &node.origin
    }

    /// Where the name of this value's entry was said.
    pub(in crate::config) fn name_origin(&self, steps: &Steps) -> Option<&Origin> {
        let (last, way) = steps.as_slice().split_last()?;
        let node = way.iter().try_fold(self, |node, step| node.child(step))?;
        match (&node.value, last) {
            (Value::Map(entries), Step::Key(name)) => {
                entries.iter().find(|(key, _)| key.name == *name).map(|(key, _)| &key.origin)
            }
            _ => None,
        }
    }

    /// Leaves a value out of what is read from now on.
    pub(in crate::config) fn remove(&mut self, steps: &Steps) {
        let found = steps.as_slice().iter().try_fold(self, |node, step| node.child_mut(step));
        if let Some(node) = found {
            node.value = Value::Removed;
        }
    }

    /// Puts a value at the end of this way, in place of what is there; makes the maps on the way.
    pub(in crate::config) fn put(&mut self, keys: &[String], key: &Origin, node: Self) {
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

    /// The value at the end of this step.
    pub(in crate::config) fn child(&self, step: &Step) -> Option<&Self> {
        match (&self.value, step) {
            (Value::Map(entries), Step::Key(name)) => {
                entries.iter().find(|(key, _)| key.name == *name).map(|(_, node)| node)
            }
            (Value::List(items), Step::Item(item)) => items.get(*item),
            _ => None,
        }
    }

    fn child_mut(&mut self, step: &Step) -> Option<&mut Self> {
        match (&mut self.value, step) {
            (Value::Map(entries), Step::Key(name)) => {
                entries.iter_mut().find(|(key, _)| key.name == *name).map(|(_, node)| node)
            }
            (Value::List(items), Step::Item(item)) => items.get_mut(*item),
            _ => None,
        }
    }
}
