//! Loads a configuration from a file, the environment and flags.

mod effective_values;
mod environment;
mod file;
mod layers;
mod loaded;
mod options;

pub use loaded::Loaded;
pub(super) use loaded::LoadedFile;
pub use options::{LoadOptions, Override};

pub(super) use file::MAX_FILE_SIZE;
pub(super) use layers::Layers;

use std::io;
use std::path::{self, Path, PathBuf};

use crate::error::ConfigError;

/// Loads the configuration: the environment takes precedence over the file, and overrides over both.
///
/// # Errors
/// Returns [`ConfigError`] with the problems of all sources.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
    let paths = [options.file(), options.list_file.as_ref().map(|file| file.path.clone())];
    let read = paths.map(|path| path.as_deref().map(ReadFile::open));
    load_files(options, read)
}

/// A file and the result of reading it.
#[derive(Debug)]
pub(super) struct ReadFile {
    pub(super) path: PathBuf,
    pub(super) content: io::Result<Vec<u8>>,
}

impl ReadFile {
    /// Reads the file at this path.
    pub(super) fn open(path: &Path) -> Self {
        Self { path: path.to_path_buf(), content: file::read(path) }
    }
}

/// Loads the configuration from the content of the configuration file and of the list file.
pub(super) fn load_files(
    options: &LoadOptions,
    [file, list]: [Option<ReadFile>; 2],
) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::new(options.sections.clone());
    let path = file.as_ref().map(|file| file.path.clone());
    let known = |read: &Option<ReadFile>| read.as_ref().and_then(LoadedFile::from_read);
    let files = [known(&file), known(&list)];
    if let Some(ReadFile { path, content }) = file {
        layers.add_file(&path, content);
    }
    for (name, value) in &options.environment {
        layers.add_variable(name, value);
    }
    if let Some((file, read)) = options.list_file.as_ref().zip(list) {
        layers.add_list_file(file, read.content);
    }
    for flag in &options.overrides {
        layers.add_flag(flag);
    }
    // Use an absolute path, so that paths relative to the file stay valid if the working directory changes.
    let folder =
        path.as_deref().and_then(|path| path::absolute(path).ok()?.parent().map(PathBuf::from));
    let loaded = layers.load(&folder.unwrap_or_default())?;
    Ok(Loaded { path, options: options.clone(), files, ..loaded })
}

/// Loads a file without the environment.
///
/// # Errors
/// Returns [`ConfigError`] in the cases of [`load`].
pub fn check(path: &Path) -> Result<Loaded, ConfigError> {
    load(&LoadOptions::new().with_path(path))
}
