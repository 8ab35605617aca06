use std::collections::HashMap;

use super::node::Node;

/// The values of anchors (`&name`), which replace aliases (`*name`), and the number of values after the
/// replacement. That number is bounded, since a kilobyte of nested aliases can expand to a billion values.
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
    /// Counts values.
    ///
    /// # Errors
    /// Returns a message if there are too many.
    pub(super) fn count(&mut self, values: usize) -> Result<(), String> {
        self.values = self.values.saturating_add(values);
        match self.values > MAX_VALUES {
            true => {
                Err(format!("more than {MAX_VALUES} values, counting repeated values of aliases"))
            }
            false => Ok(()),
        }
    }

    /// Stores the value of an anchor. The id 0 means that there is no anchor.
    pub(super) fn define(&mut self, anchor: usize, node: &Node) -> Result<(), String> {
        if anchor == 0 {
            return Ok(());
        }
        let (size, depth) = (node.size(), node.depth());
        self.count(size)?;
        self.named.insert(anchor, Anchored { node: node.clone(), size, depth });
        Ok(())
    }

    /// Returns the value of the anchor that an alias at this depth refers to.
    pub(super) fn resolve(&mut self, anchor: usize, depth: usize) -> Result<Node, String> {
        let Some(anchored) = self.named.get(&anchor) else {
            return Err("an alias must not refer to a value that contains it".to_owned());
        };
        if depth + anchored.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let size = anchored.size;
        self.count(size)?;
        Ok(self.named[&anchor].node.clone())
    }
}

/// Returns the message for values that are nested too deeply.
pub(super) fn too_deep() -> String {
    format!("nested more than {MAX_DEPTH} levels deep")
}

/// The maximum depth of nested values. A configuration has at most eight levels.
pub(super) const MAX_DEPTH: usize = 32;

/// The maximum number of values. 100,000 quotas with three limits each have half a million values.
const MAX_VALUES: usize = 1_000_000;
