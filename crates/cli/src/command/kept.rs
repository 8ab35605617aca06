use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::BatchArgs;
use super::batch_run::config;
use crate::batch::Job;
use crate::terminal::say;
use tollgate::cluster::OnFailure;
use tollgate::cluster::{Agent, Shared};
use tollgate::config::{Loaded, ReloadStatus, Reloader, StoreConfig};
use tollgate::limiter::Limiter;
use tollgate::store::Persistence;

/// What goes with the limiter of a run: its store, its bus, the limits that it shares, and the file of
/// its configuration, which may change.
pub(super) struct Kept {
    keeping: Option<Persistence>,
    trouble: JoinHandle<()>,
    _reloading: Reloader,
}

impl Kept {
    /// Puts what is kept into the limiter, keeps it from now on, joins it to the bus, and follows the
    /// configuration. `shared` are the limits that it was built with, if it shares them.
    ///
    /// # Errors
    /// Says why the store or the bus can't be used, or the file not be watched.
    pub(super) fn start(
        args: &BatchArgs,
        loaded: &Loaded,
        job: &Job,
        limiter: &Limiter,
        shared: Option<Arc<Shared>>,
    ) -> Result<Self, String> {
        let storage = storage(args, loaded)?;
        let keeping = storage.map(|storage| storage.keep(limiter)).transpose();
        let keeping = keeping.map_err(|error| error.to_string())?;
        let agent = job.config.as_ref().map(|config| config.join(limiter)).transpose();
        let agent = agent.map_err(|error| error.to_string())?.flatten();
        let cluster = job.config.as_ref().and_then(|config| config.cluster.as_ref());
        let shared = shared.zip(cluster.map(|cluster| cluster.on_failure));
        let troubles = Troubles { keeping: keeping.clone(), agent, shared };
        let trouble = tokio::spawn(troubles.tell());
        let reloading = follow(args, loaded, job, limiter)?;
        Ok(Self { keeping, trouble, _reloading: reloading })
    }

    /// Writes down what is left to be.
    pub(super) fn end(self) {
        self.trouble.abort();
        if let Some(Err(error)) = self.keeping.map(|keeping| keeping.flush_now()) {
            say(&format_args!("the last usage of this run was not saved: {error}"));
        }
    }
}

/// Where the state of this run is kept: as the arguments say, else as the configuration does; a trial
/// run against the built-in provider only where it is asked for.
fn storage(args: &BatchArgs, loaded: &Loaded) -> Result<Option<StoreConfig>, String> {
    let configured = loaded.config.store.clone();
    if args.state.store.is_none() {
        return Ok(configured.filter(|_| !args.simulate));
    }
    let place = args.state.place(loaded)?.0;
    let flush = configured.map_or(FLUSH, |storage| storage.flush);
    Ok(Some(StoreConfig::new(place, flush)))
}

/// What a run goes on without, while it can't be reached.
struct Troubles {
    keeping: Option<Persistence>,
    agent: Option<Agent>,
    shared: Option<(Arc<Shared>, OnFailure)>,
}

impl Troubles {
    /// Says once for each kind of trouble what can't be reached, and what that means.
    async fn tell(self) {
        let mut tick = tokio::time::interval(LOOK);
        // Who connects has a moment to do so.
        tick.tick().await;
        let mut told = [const { None }; 3];
        loop {
            tick.tick().await;
            let now = [self.of_store(), self.of_bus(), self.of_limits()];
            for (text, told) in now.iter().zip(&told) {
                if let Some(text) = text.as_ref().filter(|_| text != told) {
                    say(text);
                }
            }
            told = now;
        }
    }

    fn of_store(&self) -> Option<String> {
        let trouble = self.keeping.as_ref()?.status().trouble?;
        Some(format!("the store is unavailable, usage is kept in memory: {trouble}"))
    }

    fn of_bus(&self) -> Option<String> {
        let connected = self.agent.as_ref()?.status().bus.connected;
        let text = "the bus is unreachable: 429s of other machines are not received";
        (!connected).then(|| text.to_owned())
    }

    fn of_limits(&self) -> Option<String> {
        let (shared, on_failure) = self.shared.as_ref()?;
        let until = match on_failure {
            OnFailure::Closed => "no requests are sent until it is back",
            OnFailure::Open => "requests are not limited until it is back",
            OnFailure::LocalShare => "this run uses its local share until it is back",
        };
        let connected = shared.status().connected;
        (!connected).then(|| format!("the store of shared limits is unreachable: {until}"))
    }
}

/// Keeps the limiter at what the file says; one that is wrong changes nothing.
fn follow(
    args: &BatchArgs,
    loaded: &Loaded,
    job: &Job,
    limiter: &Limiter,
) -> Result<Reloader, String> {
    let (args, profile) = (args.clone(), job.profile);
    let adjusted = move |new| config(&args, &new, profile);
    let reloading = Reloader::start_with(loaded, limiter, adjusted, tell);
    reloading.map_err(|error| format!("configuration: cannot watch the file: {error}"))
}

/// Says what a change of the file has changed.
fn tell(status: &ReloadStatus) {
    if let Some(refused) = &status.refused {
        return say(&format_args!(
            "the configuration is invalid, the previous one stays in use:\n{refused}"
        ));
    }
    if !status.changed.is_empty() {
        say(&format_args!("configuration changed: {}", status.changed.join(", ")));
    }
    if !status.needs_restart.is_empty() {
        let paths = status.needs_restart.join(", ");
        say(&format_args!("takes effect with the next run: {paths}"));
    }
}

/// How often it is looked whether something can't be reached.
const LOOK: Duration = Duration::from_secs(1);

/// How often what changed is written, where nobody says.
const FLUSH: Duration = Duration::from_secs(1);
