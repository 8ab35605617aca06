use std::env;
use std::path::PathBuf;

use clap::Args;

use super::paths::Paths;
use super::place::Place;

/// Which limits, and where their state is kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits and state")]
pub struct StateArgs {
    /// The configuration [default: $TOLLGATE_CONFIG, else $XDG_CONFIG_HOME/tollgate/config.yaml if it
    /// is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where state is kept: .yaml and .yml are YAML, any other is SQLite [default: as the configuration
    /// says, else $XDG_STATE_HOME/tollgate/state.db]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

impl StateArgs {
    /// The configuration file that counts: named here, or in the environment, or the default one if it
    /// is there. A file that is named has to be there.
    pub(super) fn config(&self) -> Option<PathBuf> {
        let named = || env::var_os("TOLLGATE_CONFIG").filter(|name| !name.is_empty());
        let default = || Paths::from_env().config().ok().filter(|path| path.exists());
        self.config.clone().or_else(|| named().map(PathBuf::from)).or_else(default)
    }

    /// The file of state that counts, where the configuration names `configured`.
    ///
    /// # Errors
    /// If nobody names one and there is no home to look in.
    pub(super) fn place(&self, configured: Option<Place>) -> Result<Place, String> {
        let named = || self.store.clone().map(Place::named);
        match named().or(configured) {
            Some(place) => Ok(place),
            None => Paths::from_env().state().map(Place::named).map_err(|error| error.to_string()),
        }
    }
}
