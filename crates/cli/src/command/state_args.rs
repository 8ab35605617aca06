use std::path::PathBuf;

use clap::Args;

use super::paths::Paths;
use super::place::Place;
use crate::terminal::say;
use tollgate::config::{self, LoadOptions, Loaded};

/// Which limits, and where their state is kept.
#[derive(Debug, Clone, Default, Args)]
pub struct StateArgs {
    /// Which limits.
    #[command(flatten)]
    pub config: ConfigArgs,

    /// Where state is kept: .yaml and .yml are YAML, any other is SQLite [default: as the configuration
    /// says, else $XDG_STATE_HOME/tollgate/state.db]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

/// Which configuration.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// The configuration [default: $TOLLGATE_CONFIG, else $XDG_CONFIG_HOME/tollgate/config.yaml if it
    /// is there]
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
                "what is used of these limits is kept at {url} for the account {account}, and isn't \
                 looked at here: this is the state of the store alone"
            ));
        }
        Ok(())
    }

    /// The file of state that counts with this configuration.
    ///
    /// # Errors
    /// If nobody names one and there is no home to look in.
    pub(super) fn place(&self, loaded: &Loaded) -> Result<Place, String> {
        let configured = || loaded.config.store.as_ref().map(|store| Place(store.place.clone()));
        match self.store.clone().map(Place::named).or_else(configured) {
            Some(place) => Ok(place),
            None => Paths::from_env().state().map(Place::named).map_err(|error| error.to_string()),
        }
    }
}
