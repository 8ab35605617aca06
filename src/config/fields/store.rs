use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::span::Span;

/// Where state is kept across restarts: one of `sqlite` and `yaml`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Store", extend("oneOf" = [
    {"required": ["sqlite"], "properties": {"sqlite": {"type": "string"}}},
    {"required": ["yaml"], "properties": {"yaml": {"type": "string"}}},
]))]
pub(in crate::config) struct StoreFields {
    /// A SQLite database, which several processes may share. Relative to this file's folder.
    #[schemars(with = "Option<String>", length(min = 1), example = &"state.db")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) sqlite: Option<PathBuf>,
    /// A YAML file, for one process. Relative to this file's folder.
    #[schemars(with = "Option<String>", length(min = 1), example = &"state.yaml")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) yaml: Option<PathBuf>,
    /// How often what changed is written: at most so much is lost when a process is killed. From 10ms
    /// to 1h. Default: 1s.
    pub(in crate::config) flush: Span,
}

impl Default for StoreFields {
    fn default() -> Self {
        Self { sqlite: None, yaml: None, flush: Span(Duration::from_secs(1)) }
    }
}
