use std::path::PathBuf;

use super::Read;
use super::options::LoadOptions;
use super::show::Shown;
use crate::config::config::Config;
use crate::config::section::Document;
use crate::config::tree::Node;

/// A configuration, and where each of its values was said.
#[derive(Clone)]
#[non_exhaustive]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The file, where there was one.
    pub path: Option<PathBuf>,
    pub(super) tree: Node,
    pub(super) document: Document,
    /// What it was loaded from, to do so again.
    pub(in crate::config) options: LoadOptions,
    /// The configuration file and the list file, as they were then.
    pub(in crate::config) files: [Option<Known>; 2],
}

/// A file that was read, and what it said.
#[derive(Clone)]
pub(in crate::config) struct Known {
    pub(in crate::config) path: PathBuf,
    pub(in crate::config) content: Vec<u8>,
}

impl Loaded {
    /// Every value in effect and where it was said, a line each, in columns. Passwords are left out.
    pub fn show(&self) -> String {
        self.shown().text()
    }

    /// The same as JSON: `{"path": .., "value": .., "origin": ..}` for each.
    pub fn to_json(&self) -> serde_json::Value {
        self.shown().json()
    }

    pub(super) fn new(config: Config, tree: Node, document: Document) -> Self {
        let (options, files) = (LoadOptions::new(), [None, None]);
        Self { config, path: None, tree, document, options, files }
    }

    fn shown(&self) -> Shown {
        Shown::new(&self.tree, &self.document, &self.config)
    }
}

impl Known {
    pub(super) fn of(read: &Read) -> Option<Self> {
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
