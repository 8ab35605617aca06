//! Reads a tree into types by their serde derives, and tells where each error lies.

mod entries;
mod error;
mod nearest;
mod reader;

pub(super) use entries::Entries;
pub(super) use error::ReadError;
pub(super) use nearest::{misspelt, nearest};
pub(super) use reader::Reader;

use super::error::Problem;
use super::tree::{Node, Steps};
use error::Kind;

/// Reads a tree by `by`, as far as it can be read, and returns the problems of the rest.
///
/// What is wrong is left out and the rest read again, so that one reading finds all that is wrong.
/// `removed` tells what was left out.
pub(super) fn read<T>(tree: &Node, by: impl Fn(&Node) -> Result<T, ReadError>) -> Reading<T> {
    let mut tree = tree.clone();
    let (mut problems, mut removed) = (Vec::new(), Vec::<Steps>::new());
    while problems.len() < MOST_PROBLEMS {
        let error = match by(&tree) {
            Ok(value) => return Reading { value: Some(value), problems, removed },
            Err(error) => error,
        };
        // What is missing only because it was left out isn't missing.
        let follows = match &error.kind {
            Kind::Missing(field) => removed.contains(&error.steps.key(field)),
            Kind::Whole => removed.iter().any(|gone| error.steps.holds(gone)),
            Kind::Name | Kind::Value => false,
        };
        if !follows {
            problems.push(error.problem(&tree));
        }
        if error.steps.is_empty() {
            break;
        }
        tree.remove(&error.steps);
        removed.push(error.steps);
    }
    Reading { value: None, problems, removed }
}

/// See [`read`].
#[derive(Debug)]
pub(super) struct Reading<T> {
    pub(super) value: Option<T>,
    pub(super) problems: Vec<Problem>,
    pub(super) removed: Vec<Steps>,
}

/// More don't help who reads them.
pub(super) const MOST_PROBLEMS: usize = 20;
