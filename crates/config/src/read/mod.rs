//! Deserializes a tree with serde, and reports the position of each error.

mod error;
mod nearest;
mod reader;

pub(super) use error::ReadError;
pub(super) use nearest::{misspelt, nearest};
pub(super) use reader::{Entries, Reader};

use crate::error::Problem;
use crate::tree::{FieldPath, Node};
use error::Kind;

/// Reads a tree with `parse`, and returns the value and all problems.
///
/// After an error, the invalid value is removed and the tree is read again, so that all errors are
/// reported together. `removed` contains the paths of removed values.
pub(super) fn read<T>(tree: &Node, parse: impl Fn(&Node) -> Result<T, ReadError>) -> Reading<T> {
    let mut tree = tree.clone();
    let (mut problems, mut removed) = (Vec::new(), Vec::<FieldPath>::new());
    while problems.len() < MAX_PROBLEMS {
        let error = match parse(&tree) {
            Ok(value) => return Reading { value: Some(value), problems, removed },
            Err(error) => error,
        };
        // The lack of a removed value is not another problem.
        let is_consequence = match &error.kind {
            Kind::Missing(field) => removed.contains(&error.path.key(field)),
            Kind::Whole => removed.iter().any(|removed| error.path.contains(removed)),
            Kind::Name | Kind::Value => false,
        };
        if !is_consequence {
            problems.push(error.problem(&tree));
        }
        if error.path.is_empty() {
            break;
        }
        tree.remove(&error.path);
        removed.push(error.path);
    }
    Reading { value: None, problems, removed }
}

/// The result of [`read`].
#[derive(Debug)]
pub(super) struct Reading<T> {
    pub(super) value: Option<T>,
    pub(super) problems: Vec<Problem>,
    pub(super) removed: Vec<FieldPath>,
}

/// The maximum number of problems that are reported.
pub(super) const MAX_PROBLEMS: usize = 20;
