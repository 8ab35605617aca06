//! YAML as a tree of nodes, each of which knows where it was said.

mod anchors;
mod json;
mod key;
mod mask;
mod node;
mod origin;
mod scalar;
mod steps;
mod yaml;

pub(super) use key::Key;
pub(super) use mask::{mask, quote};
pub(super) use node::{Node, Value};
pub use origin::{Origin, Position};
pub(super) use steps::Step;
pub use steps::Steps;
pub(super) use yaml::{Parsed, Source, parse};
