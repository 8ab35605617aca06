use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// The default paths of files, by the XDG Base Directory Specification 0.8.
///
/// A variable that is empty or contains a relative path counts as unset, as specified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Paths {
    config: Result<PathBuf, NoHome>,
    state: Result<PathBuf, NoHome>,
}

impl Paths {
    /// Returns the paths for the environment of this process.
    pub(super) fn from_env() -> Self {
        Self::of(|name| env::var_os(name))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder =
            |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let path = |name, below_home: &str, file: &str, option| {
            let home = || folder("HOME").map(|home| home.join(below_home));
            let base = folder(name).or_else(home).ok_or(NoHome { option })?;
            Ok(base.join("paceline").join(file))
        };
        Self {
            config: path("XDG_CONFIG_HOME", ".config", "config.yaml", "--config"),
            state: path("XDG_STATE_HOME", ".local/state", "state.db", "--store"),
        }
    }

    /// Returns the configuration file.
    pub(super) fn config(&self) -> Result<PathBuf, NoHome> {
        self.config.clone()
    }

    /// Returns the state file.
    pub(super) fn state(&self) -> Result<PathBuf, NoHome> {
        self.state.clone()
    }
}

/// An error for a missing home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoHome {
    option: &'static str,
}

impl fmt::Display for NoHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HOME: not set, so there is no default path; set a path with {}", self.option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(variables: &[(&str, &str)]) -> Paths {
        Paths::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn default_paths_follow_xdg_variables() {
        let default = paths(&[("HOME", "/home/me")]);
        assert_eq!(default.config(), Ok("/home/me/.config/paceline/config.yaml".into()));
        assert_eq!(default.state(), Ok("/home/me/.local/state/paceline/state.db".into()));
        let set = paths(&[("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s"), ("HOME", "/h")]);
        assert_eq!(set.config(), Ok("/c/paceline/config.yaml".into()));
        assert_eq!(set.state(), Ok("/s/paceline/state.db".into()));
    }

    #[test]
    fn relative_and_empty_variables_are_ignored() {
        for value in ["", "state", "./state", "~/state"] {
            let paths = paths(&[("XDG_STATE_HOME", value), ("HOME", "/h")]);
            assert_eq!(paths.state(), Ok("/h/.local/state/paceline/state.db".into()), "{value}");
        }
    }

    #[test]
    fn missing_home_error_names_required_option() {
        for variables in [&[][..], &[("HOME", "")], &[("HOME", "here")]] {
            let paths = paths(variables);
            let error = paths.state().expect_err("no home directory").to_string();
            assert!(error.ends_with("set a path with --store"), "{error}");
            assert!(
                paths.config().expect_err("no home directory").to_string().ends_with("--config")
            );
        }
        assert!(paths(&[("XDG_STATE_HOME", "/s")]).state().is_ok());
    }
}
