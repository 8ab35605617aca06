use std::path::PathBuf;

use super::effective_values::EffectiveValues;
use super::file::ReadFile;
use super::options::LoadOptions;
use crate::config::Config;
use crate::section::Document;
use crate::tree::Node;

/// A configuration, and the source of each of its values.
#[derive(Clone)]
#[non_exhaustive]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The path of the file, if there was one.
    pub path: Option<PathBuf>,
    pub(super) tree: Node,
    pub(super) document: Document,
    /// The options to reload the configuration.
    pub(crate) options: LoadOptions,
    /// The configuration file and the list file, with the content that was loaded.
    pub(crate) files: [Option<LoadedFile>; 2],
}

/// A file and its content.
#[derive(Clone)]
pub(crate) struct LoadedFile {
    pub(crate) path: PathBuf,
    pub(crate) content: Vec<u8>,
}

impl Loaded {
    /// Returns a table of all values in effect with their sources, one per line. Passwords are left out.
    pub fn show(&self) -> String {
        self.effective_values().to_text()
    }

    /// Returns the values in effect as JSON: `{"path": .., "value": .., "origin": ..}` for each.
    pub fn to_json(&self) -> serde_json::Value {
        self.effective_values().to_json()
    }

    pub(super) fn new(config: Config, tree: Node, document: Document) -> Self {
        let (options, files) = (LoadOptions::new(), [None, None]);
        Self { config, path: None, tree, document, options, files }
    }

    fn effective_values(&self) -> EffectiveValues {
        EffectiveValues::new(&self.tree, &self.document, &self.config)
    }
}

impl LoadedFile {
    pub(super) fn from_read(read: &ReadFile) -> Option<Self> {
        let content = read.content.as_ref().ok()?.clone();
        Some(Self { path: read.path.clone(), content })
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("path", &self.path)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
