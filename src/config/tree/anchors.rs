use std::collections::HashMap;

use super::node::Node;

/// What anchors (`&name`) stand for, so that aliases (`*name`) can be replaced by it; and how much a
/// file may say at all, counted after that: a kilobyte of aliases of aliases can mean a billion
/// values.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    named: HashMap<usize, Anchored>,
    values: usize,
}

#[derive(Debug)]
struct Anchored {
    node: Node,
    size: usize,
    depth: usize,
}

impl Anchors {
    /// Counts a value.
    ///
    /// # Errors
    /// What is wrong, if there are too many.
    pub(super) fn count(&mut self, values: usize) -> Result<(), String> {
        self.values = self.values.saturating_add(values);
        match self.values > MOST_VALUES {
            true => {
                Err(format!("more than {MOST_VALUES} values (aliases count as what they repeat)"))
            }
            false => Ok(()),
        }
    }

    /// Keeps what an anchor stands for; 0 is none.
    pub(super) fn keep(&mut self, anchor: usize, node: &Node) -> Result<(), String> {
        if anchor == 0 {
            return Ok(());
        }
        let (size, depth) = (node.size(), node.depth());
        self.count(size)?;
        self.named.insert(anchor, Anchored { node: node.clone(), size, depth });
        Ok(())
    }

    /// A copy of what an alias repeats, at this depth.
    pub(super) fn repeat(&mut self, anchor: usize, depth: usize) -> Result<Node, String> {
        let Some(anchored) = self.named.get(&anchor) else {
            return Err("this alias repeats what it is a part of".to_owned());
        };
        if depth + anchored.depth > DEEPEST {
            return Err(too_deep());
        }
        let size = anchored.size;
        self.count(size)?;
        Ok(self.named[&anchor].node.clone())
    }
}

/// What is wrong where values lie too deep within each other.
pub(super) fn too_deep() -> String {
    format!("more than {DEEPEST} values within each other")
}

/// How many values may lie within each other: a configuration needs eight.
pub(super) const DEEPEST: usize = 32;

/// 100,000 quotas of three limits are half a million.
const MOST_VALUES: usize = 1_000_000;
