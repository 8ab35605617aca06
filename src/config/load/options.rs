use std::fmt;
use std::path::PathBuf;

use crate::config::section::Sections;

/// What a configuration is loaded from.
///
/// ```
/// use tollgate::config::{self, LoadOptions, Override};
///
/// let options = LoadOptions::new()
///     .with_environment([("TOLLGATE_WAITING__MAX_WAIT".to_owned(), "2m".to_owned())])
///     .with_override(Override::new("--share", &["share"], "0.5"));
/// let loaded = config::load(&options)?;
/// assert_eq!(loaded.config.waiting.max_wait.map(|wait| wait.as_secs()), Some(120));
/// # Ok::<(), tollgate::config::ConfigError>(())
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
    /// The path of the configuration's list that it replaces.
    pub(super) at: Vec<String>,
}

/// A value of the configuration that a flag gives.
#[derive(Clone, PartialEq, Eq)]
pub struct Override {
    pub(super) flag: String,
    pub(super) path: Vec<String>,
    pub(super) value: String,
}

impl Override {
    /// A flag as it is spelled, the way to its value, and the value as YAML.
    pub fn new(flag: &str, path: &[&str], value: &str) -> Self {
        let path = path.iter().map(|&name| name.to_owned()).collect();
        Self { flag: flag.to_owned(), path, value: value.to_owned() }
    }
}

impl LoadOptions {
    /// Nothing: the defaults alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// This process's environment, and the file that `TOLLGATE_CONFIG` names, or else the default
    /// one if it is there.
    pub fn from_environment() -> Self {
        // A value that is no Unicode is one that can't be used, not one that isn't there.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        };
        Self::new().with_environment(std::env::vars_os().filter_map(text))
    }

    /// This file, whatever the environment says.
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Of these environment variables those of tollgate's name, and those that say where the default
    /// file is (`XDG_CONFIG_HOME`, `HOME`). Others may be secrets, and aren't kept.
    pub fn with_environment(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let ours = |(name, _): &(String, String)| {
            name.starts_with("TOLLGATE_") || ["XDG_CONFIG_HOME", "HOME"].contains(&name.as_str())
        };
        self.environment = variables.into_iter().filter(ours).collect();
        self.environment.sort();
        self
    }

    /// Reads the list at the path `at` from a separate file, JSON or YAML, of another program. That
    /// file is a map with one list of maps, named `entry`; a field of an item that is 0 counts as
    /// missing. The list replaces the one of the configuration file and of the environment; flags go
    /// over it. [`Reloading`](crate::config::Reloading) follows both files.
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

    /// A value of its own, over what the file and the environment say.
    pub fn with_override(mut self, value: Override) -> Self {
        self.overrides.push(value);
        self
    }

    /// The file: the one that was given, else the one that `TOLLGATE_CONFIG` names, else
    /// `$XDG_CONFIG_HOME/tollgate/config.yaml` (or below `~/.config`) if it is there.
    pub fn file(&self) -> Option<PathBuf> {
        let set = |name| self.variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || set("HOME").map(|home| home.join(".config"));
        let default = || {
            let folder = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(home)?;
            Some(folder.join("tollgate/config.yaml")).filter(|path| path.is_file())
        };
        self.path.clone().or_else(|| set("TOLLGATE_CONFIG")).or_else(default)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for LoadOptions {
    /// With names alone: values may hold passwords.
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
    /// Without the value, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Override")
            .field("flag", &self.flag)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
