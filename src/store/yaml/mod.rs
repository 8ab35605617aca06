//! State in a YAML file: for one process, and for people to read.
//!
//! Doesn't share: see `sqlite` for that. The format stands at [`Yaml`].

mod bucket;
mod document;
mod file;
mod key;
mod lock;
mod quota;
mod start;
mod text;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod yaml;

pub use yaml::Yaml;
