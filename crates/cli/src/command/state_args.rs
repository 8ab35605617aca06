use std::path::PathBuf;

use clap::Args;

use super::paths::Paths;
use super::state_file::StateFile;
use paceline_config::{self as config, LoadOptions, Loaded};

/// The configuration and the store.
#[derive(Debug, Clone, Default, Args)]
pub struct StateArgs {
    /// The configuration file.
    #[command(flatten)]
    pub config: ConfigArgs,

    /// Store: .yaml and .yml are YAML files, any other is SQLite [default: from the configuration,
    /// else $XDG_STATE_HOME/paceline/state.db]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

/// The configuration file.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Configuration file [default: $PACELINE_CONFIG, else $XDG_CONFIG_HOME/paceline/config.yaml if
    /// it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigArgs {
    /// Returns the sources of the configuration: the given file, else the environment's, else the
    /// default file if it exists, overridden by environment variables.
    pub(super) fn options(&self) -> LoadOptions {
        let options = LoadOptions::from_environment().with_sections(paceline_serve::sections());
        match &self.config {
            Some(path) => options.with_path(path),
            None => options,
        }
    }

    /// Loads the configuration.
    ///
    /// # Errors
    /// Returns all errors of the configuration, one per line.
    pub(super) fn load(&self) -> Result<Loaded, String> {
        config::load(&self.options()).map_err(|error| error.to_string())
    }
}

impl StateArgs {
    /// Returns the state file.
    ///
    /// # Errors
    /// Returns an error if no file is given and there is no home directory.
    pub(super) fn state_file(&self, loaded: &Loaded) -> Result<StateFile, String> {
        let configured = || loaded.config.store.as_ref().map(|store| StateFile(store.file.clone()));
        match self.store.clone().map(StateFile::named).or_else(configured) {
            Some(file) => Ok(file),
            None => {
                Paths::from_env().state().map(StateFile::named).map_err(|error| error.to_string())
            }
        }
    }
}
