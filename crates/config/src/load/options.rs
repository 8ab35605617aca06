use std::fmt;
use std::path::PathBuf;

use crate::section::Sections;

/// The sources of a configuration.
///
/// ```
/// use paceline_config::{LoadOptions, Override};
///
/// let options = LoadOptions::new()
///     .with_environment([("PACELINE_WAITING__MAX_WAIT".to_owned(), "2m".to_owned())])
///     .with_override(Override::new("--share", &["share"], "0.5"));
/// let loaded = paceline_config::load(&options)?;
/// assert_eq!(loaded.config.waiting.max_wait.map(|wait| wait.as_secs()), Some(120));
/// # Ok::<(), paceline_config::ConfigError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct LoadOptions {
    path: Option<PathBuf>,
    pub(super) list_file: Option<ListFile>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) overrides: Vec<Override>,
    pub(super) sections: Sections,
}

/// A separate file for a list of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListFile {
    pub(super) path: PathBuf,
    /// The name of the list in that file.
    pub(super) entry: String,
    /// The path of the list in the configuration that it replaces.
    pub(super) at: Vec<String>,
}

/// A value of the configuration that a command-line flag sets.
#[derive(Clone, PartialEq, Eq)]
pub struct Override {
    pub(super) flag: String,
    pub(super) path: Vec<String>,
    pub(super) value: String,
}

impl Override {
    /// Creates an override from the name of the flag, the path of the value, and the value as YAML.
    pub fn new(flag: &str, path: &[&str], value: &str) -> Self {
        let path = path.iter().map(|&name| name.to_owned()).collect();
        Self { flag: flag.to_owned(), path, value: value.to_owned() }
    }
}

impl LoadOptions {
    /// Creates options without any source: the defaults apply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates options with the environment of this process. The file is the one that `PACELINE_CONFIG`
    /// names, else the default file if it exists.
    pub fn from_environment() -> Self {
        // Treat a value that is not Unicode as invalid, not as missing.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        };
        Self::new().with_environment(std::env::vars_os().filter_map(text))
    }

    /// Sets the file, regardless of `PACELINE_CONFIG`.
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the environment variables. Only those that start with `PACELINE_`, and those that locate the
    /// default file (`XDG_CONFIG_HOME`, `HOME`), are kept, since others may be secrets.
    pub fn with_environment(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let is_used = |(name, _): &(String, String)| {
            name.starts_with("PACELINE_") || ["XDG_CONFIG_HOME", "HOME"].contains(&name.as_str())
        };
        self.environment = variables.into_iter().filter(is_used).collect();
        self.environment.sort();
        self
    }

    /// Reads the list at the path `at` from a separate file of another program, in JSON or YAML. That
    /// file is a map with one list of maps, named `entry`. Fields of items that are 0 count as missing.
    /// The list replaces the list of the configuration file and of the environment; flags take
    /// precedence over it. [`Reloader`](crate::Reloader) watches both files.
    pub fn with_list_file(mut self, path: impl Into<PathBuf>, entry: &str, at: &[&str]) -> Self {
        let at = at.iter().map(|&name| name.to_owned()).collect();
        self.list_file = Some(ListFile { path: path.into(), entry: entry.to_owned(), at });
        self
    }

    /// Registers the sections that are read in addition to those of the library.
    pub fn with_sections(mut self, sections: Sections) -> Self {
        self.sections = sections;
        self
    }

    /// Adds a value that takes precedence over the file and the environment.
    pub fn with_override(mut self, value: Override) -> Self {
        self.overrides.push(value);
        self
    }

    /// Returns the path of the file: the path that was set, else the value of `PACELINE_CONFIG`, else
    /// `$XDG_CONFIG_HOME/paceline/config.yaml` (or below `~/.config`) if that file exists.
    pub fn file(&self) -> Option<PathBuf> {
        let set = |name| self.variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || set("HOME").map(|home| home.join(".config"));
        let default = || {
            let folder = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(home)?;
            Some(folder.join("paceline/config.yaml")).filter(|path| path.is_file())
        };
        self.path.clone().or_else(|| set("PACELINE_CONFIG")).or_else(default)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for LoadOptions {
    /// Formats the names of variables without their values, which may be passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("LoadOptions")
            .field("path", &self.path)
            .field("list_file", &self.list_file)
            .field("environment", &names)
            .field("overrides", &self.overrides)
            .field("sections", &self.sections)
            .finish()
    }
}

impl fmt::Debug for Override {
    /// Formats the override without its value, which may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Override")
            .field("flag", &self.flag)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
