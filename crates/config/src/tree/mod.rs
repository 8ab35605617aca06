//! YAML as a tree of nodes with their positions.

mod anchors;
mod field_path;
mod json;
mod key;
mod mask;
mod node;
mod origin;
mod scalar;
mod yaml;

pub use field_path::FieldPath;
pub(super) use field_path::Segment;
pub(super) use key::Key;
pub(super) use mask::{mask, quote};
pub(super) use node::{Node, Value};
pub use origin::{Origin, Position};
pub(super) use yaml::{Parsed, Source, parse};
