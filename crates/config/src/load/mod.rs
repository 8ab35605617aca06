//! Loads a configuration from a file, the environment and flags.

mod effective_values;
mod environment;
mod file;
mod layers;
mod loaded;
mod options;

pub use loaded::Loaded;
pub use options::{LoadOptions, Override};

pub(super) use file::{MAX_FILE_SIZE, ReadFile};
pub(super) use loaded::LoadedFile;

use std::path::{self, Path, PathBuf};

use layers::Layers;

use crate::config::Config;
use crate::error::ConfigError;
use crate::section::Sections;
use crate::tree::Source;

/// Loads the configuration: the environment takes precedence over the file, and overrides over both.
///
/// # Errors
/// Returns [`ConfigError`] with the problems of all sources.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
    let paths = [options.file(), options.list_file.as_ref().map(|file| file.path.clone())];
    let read = paths.map(|path| path.as_deref().map(ReadFile::open));
    load_files(options, read)
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

impl Config {
    /// Parses a configuration in YAML. Relative paths in it are not resolved.
    ///
    /// # Errors
    /// Returns [`ConfigError`] with the line, the column and the path of each invalid value. Messages use
    /// `config` as the file name.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, &Sections::new())
    }

    /// Parses a configuration in YAML that may also have these sections.
    ///
    /// # Errors
    /// Returns [`ConfigError`] in the cases of [`parse`](Self::parse).
    pub fn parse_with(text: &str, sections: &Sections) -> Result<Self, ConfigError> {
        let mut layers = Layers::new(sections.clone());
        layers.add_text(text, &Source::File("config".into()));
        layers.load(Path::new("")).map(|loaded| loaded.config)
    }
}
