//! Where a configuration comes from: a file, the environment, flags.

mod environment;
mod file;
mod layers;
mod loaded;
mod options;
mod show;

pub use loaded::Loaded;
pub use options::{LoadOptions, Override};

pub(super) use file::LARGEST;
pub(super) use layers::Layers;

use std::io;
use std::path::{self, Path, PathBuf};

use super::error::ConfigError;

/// Loads the configuration: the file, over it the environment, over that the overrides.
///
/// # Errors
/// [`ConfigError`], with all that is wrong, wherever it was said.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
    let path = options.file();
    let read = path.as_deref().map(file::read);
    let content = read.as_ref().and_then(|read| read.as_ref().ok()).cloned();
    let loaded = load_read(options, path.as_deref().zip(read))?;
    Ok(Loaded { content: content.unwrap_or_default(), ..loaded })
}

/// The same with what was read of the file.
pub(super) fn load_read(
    options: &LoadOptions,
    file: Option<(&Path, io::Result<Vec<u8>>)>,
) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::default();
    let path = file.as_ref().map(|(path, _)| path.to_path_buf());
    if let Some((path, read)) = file {
        layers.file(path, read);
    }
    for (name, value) in &options.environment {
        layers.variable(name, value);
    }
    for flag in &options.overrides {
        layers.flag(flag);
    }
    // Whole, so that what is relative to it stays where it is if the process goes elsewhere.
    let folder =
        path.as_deref().and_then(|path| path::absolute(path).ok()?.parent().map(PathBuf::from));
    let loaded = layers.load(&folder.unwrap_or_default())?;
    Ok(Loaded { path, options: options.clone(), ..loaded })
}

/// Reads a file alone, without the environment.
///
/// # Errors
/// As [`load`].
pub fn check(path: &Path) -> Result<Loaded, ConfigError> {
    load(&LoadOptions::new().with_path(path))
}
