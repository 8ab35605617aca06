use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::human_duration::HumanDuration;

/// The store that keeps state across restarts: either `sqlite` or `yaml`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Store", extend("oneOf" = [
    {"required": ["sqlite"], "properties": {"sqlite": {"type": "string"}}},
    {"required": ["yaml"], "properties": {"yaml": {"type": "string"}}},
]))]
pub(crate) struct StoreFields {
    /// The path of a SQLite database, which several processes may share. Relative to the directory of
    /// this file.
    #[schemars(with = "Option<String>", length(min = 1), example = &"state.db")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sqlite: Option<PathBuf>,
    /// The path of a YAML file, for one process. Relative to the directory of this file.
    #[schemars(with = "Option<String>", length(min = 1), example = &"state.yaml")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) yaml: Option<PathBuf>,
    /// The interval between writes, which limits the changes that are lost when the process is killed.
    /// From 10ms to 1h. Default: 1s.
    pub(crate) flush: HumanDuration,
}

impl Default for StoreFields {
    fn default() -> Self {
        Self { sqlite: None, yaml: None, flush: HumanDuration(Duration::from_secs(1)) }
    }
}
