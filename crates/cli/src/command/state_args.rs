use std::path::PathBuf;

use clap::Args;

use super::paths::Paths;
use super::place::Place;
use crate::terminal::say;
use tollgate::config::{self, LoadOptions, Loaded};

/// The configuration and the store.
#[derive(Debug, Clone, Default, Args)]
pub struct StateArgs {
    /// The configuration file.
    #[command(flatten)]
    pub config: ConfigArgs,

    /// Store: .yaml and .yml are YAML files, any other is SQLite [default: from the configuration,
    /// else $XDG_STATE_HOME/tollgate/state.db]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

/// The configuration file.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Configuration file [default: $TOLLGATE_CONFIG, else $XDG_CONFIG_HOME/tollgate/config.yaml if
    /// it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigArgs {
    /// What the configuration is loaded from: the file that is named here, or in the environment, or
    /// the default one if it is there; and the environment over it.
    pub(super) fn options(&self) -> LoadOptions {
        let options = LoadOptions::from_environment().with_sections(tollgate_serve::sections());
        match &self.config {
            Some(path) => options.with_path(path),
            None => options,
        }
    }

    /// The configuration.
    ///
    /// # Errors
    /// All that is wrong with it, one thing a line.
    pub(super) fn load(&self) -> Result<Loaded, String> {
        config::load(&self.options()).map_err(|error| error.to_string())
    }
}

impl StateArgs {
    /// Says so if the limits of the configuration are shared with other machines: what is used of them
    /// is known to the server alone, and this command looks at the store.
    ///
    /// # Errors
    /// As [`ConfigArgs::load`].
    pub(super) fn tell_if_shared(&self) -> Result<(), String> {
        if let Some(cluster) = self.config.load()?.config.cluster {
            let (account, url) = (&cluster.account, &cluster.redis);
            say(&format_args!(
                "usage of these limits is shared at {url} for the account {account} and not included: \
                 showing only the state of the store"
            ));
        }
        Ok(())
    }

    /// The file of state that counts with this configuration.
    ///
    /// # Errors
    /// If nobody names one and there is no home to look in.
    pub(super) fn place(&self, loaded: &Loaded) -> Result<Place, String> {
        let configured = || loaded.config.store.as_ref().map(|store| Place(store.file.clone()));
        match self.store.clone().map(Place::named).or_else(configured) {
            Some(place) => Ok(place),
            None => Paths::from_env().state().map(Place::named).map_err(|error| error.to_string()),
        }
    }
}
