use std::path::Path;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::BatchArgs;
use super::batch_run::config;
use crate::batch::Job;
use crate::config::{Config, LoadOptions, Loaded, Storage, StoragePlace, Watch, Watched, load};
use crate::limiter::Limiter;
use crate::provider::Profile;
use crate::store::{Keeping, Sqlite, StoreError, Yaml};

/// What goes with the limiter of a run: its store, and the file of its configuration, which may change.
pub(super) struct Kept {
    keeping: Option<Keeping>,
    trouble: Option<JoinHandle<()>>,
    _watch: Option<Watch>,
}

impl Kept {
    /// Puts what is kept into the limiter, keeps it from now on, and follows the configuration.
    ///
    /// # Errors
    /// Says why the store can't be used, or the file not be watched.
    pub(super) fn start(
        args: &BatchArgs,
        loaded: &Loaded,
        job: &Job,
        limiter: &Limiter,
    ) -> Result<Self, String> {
        let storage = storage(args, loaded)?;
        let keeping = storage.map(|storage| keep(limiter, &storage)).transpose();
        let keeping = keeping.map_err(|error| error.to_string())?;
        let trouble = keeping.clone().map(|keeping| tokio::spawn(tell_trouble(keeping)));
        let watch = match (&loaded.path, &job.config) {
            (Some(path), Some(config)) => {
                let follow = Follow {
                    options: args.state.config.options(),
                    args: args.clone(),
                    profile: job.profile,
                    current: config.clone(),
                    limiter: limiter.clone(),
                };
                Some(watch(path, follow)?)
            }
            _ => None,
        };
        Ok(Self { keeping, trouble, _watch: watch })
    }

    /// Writes down what is left to be.
    pub(super) fn end(self) {
        if let Some(trouble) = self.trouble {
            trouble.abort();
        }
        if let Some(Err(error)) = self.keeping.map(|keeping| keeping.flush_now()) {
            eprintln!("tollgate: what this run used last is not kept: {error}");
        }
    }
}

/// Where the state of this run is kept: as the arguments say, else as the configuration does; a trial
/// run against the built-in provider only where it is asked for.
fn storage(args: &BatchArgs, loaded: &Loaded) -> Result<Option<Storage>, String> {
    let configured = loaded.config.store.clone();
    if args.state.store.is_none() {
        return Ok(configured.filter(|_| !args.simulate));
    }
    let place = args.state.place(loaded)?.0;
    let flush = configured.map_or(FLUSH, |storage| storage.flush);
    Ok(Some(Storage { place, flush }))
}

fn keep(limiter: &Limiter, storage: &Storage) -> Result<Keeping, StoreError> {
    match &storage.place {
        StoragePlace::Sqlite(path) => Keeping::start(limiter, Sqlite::new(path), storage.flush),
        StoragePlace::Yaml(path) => Keeping::start(limiter, Yaml::new(path), storage.flush),
    }
}

/// Says once for each kind of trouble that state can't be kept.
async fn tell_trouble(keeping: Keeping) {
    let mut tick = tokio::time::interval(FLUSH);
    let mut told = None;
    loop {
        tick.tick().await;
        let trouble = keeping.status().trouble.map(|error| error.to_string());
        if let Some(text) = trouble.as_ref().filter(|_| trouble != told) {
            eprintln!("tollgate: state can't be kept, and limits go on in memory: {text}");
        }
        told = trouble;
    }
}

/// A limiter that follows its configuration.
struct Follow {
    options: LoadOptions,
    args: BatchArgs,
    profile: Profile,
    current: Config,
    limiter: Limiter,
}

impl Follow {
    /// Brings the limiter to what the file says now; a file that is wrong changes nothing.
    fn again(&mut self) {
        let loaded = match load(&self.options) {
            Ok(loaded) => loaded,
            Err(error) => {
                return eprintln!("tollgate: the configuration before stays in use:\n{error}");
            }
        };
        let new = config(&self.args, &loaded.config, self.profile);
        let applied = new.apply(&self.current, &self.limiter);
        if !applied.changed.is_empty() {
            eprintln!("tollgate: the configuration has changed: {}", applied.changed.join(", "));
        }
        if !applied.needs_restart.is_empty() {
            let paths = applied.needs_restart.join(", ");
            eprintln!("tollgate: used with the next run only: {paths}");
        }
        self.current = new;
    }
}

fn watch(path: &Path, mut follow: Follow) -> Result<Watch, String> {
    let (file, _) = Watched::open(path, LARGEST);
    let watch = Watch::start(file, Watch::INTERVAL, move |_| follow.again());
    watch.map_err(|error| format!("{} can't be watched: {error}", path.display()))
}

/// How often what changed is written, where nobody says.
const FLUSH: Duration = Duration::from_secs(1);

/// As much of a file as is compared, in bytes.
const LARGEST: u64 = 8 << 20;
