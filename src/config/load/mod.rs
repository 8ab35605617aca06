//! Where a configuration comes from: a file, the environment, flags.

mod environment;
mod file;
mod layers;
mod loaded;
mod options;
mod show;

pub use loaded::Loaded;
pub use options::{LoadOptions, Override};

pub(super) use layers::Layers;

use std::path::Path;

use super::error::ConfigError;

/// Loads the configuration: the file, over it the environment, over that the overrides.
///
/// # Errors
/// [`ConfigError`], with all that is wrong, wherever it was said.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
    let path = options.file();
    let mut layers = Layers::default();
    if let Some(path) = &path {
        layers.file(path);
    }
    for (name, value) in &options.environment {
        layers.variable(name, value);
    }
    for flag in &options.overrides {
        layers.flag(flag);
    }
    let folder = path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let loaded = layers.load(folder)?;
    Ok(Loaded { path, ..loaded })
}

/// Reads a file alone, without the environment.
///
/// # Errors
/// As [`load`].
pub fn check(path: &Path) -> Result<Loaded, ConfigError> {
    load(&LoadOptions::new().with_path(path))
}
