use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::BatchArgs;
use super::batch_run::config;
use crate::batch::Job;
use crate::terminal::notify;
use tollgate::cluster::OnFailure;
use tollgate::cluster::{Agent, Shared};
use tollgate::config::{Loaded, ReloadStatus, Reloader, StoreConfig};
use tollgate::limiter::Limiter;
use tollgate::store::Persistence;

/// The services of a run: store, bus, shared limits, and reloading of the configuration.
pub(super) struct RunServices {
    keeping: Option<Persistence>,
    trouble: JoinHandle<()>,
    _reloading: Reloader,
}

impl RunServices {
    /// Restores the state of the limiter and saves it from now on, joins the bus, and reloads the
    /// configuration when it changes. `shared` are the shared limits of the limiter.
    ///
    /// Returns an error of the store, the bus or the configuration file.
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
        let troubles = ServiceMonitor { keeping: keeping.clone(), agent, shared };
        let trouble = tokio::spawn(troubles.tell());
        let reloading = follow(args, loaded, job, limiter)?;
        Ok(Self { keeping, trouble, _reloading: reloading })
    }

    /// Saves the remaining changes.
    pub(super) fn end(self) {
        self.trouble.abort();
        if let Some(Err(error)) = self.keeping.map(|keeping| keeping.flush_now()) {
            notify(&format_args!("the last usage of this run was not saved: {error}"));
        }
    }
}

/// Returns the store of the arguments, else of the configuration; a trial run uses only the former.
fn storage(args: &BatchArgs, loaded: &Loaded) -> Result<Option<StoreConfig>, String> {
    let configured = loaded.config.store.clone();
    if args.state.store.is_none() {
        return Ok(configured.filter(|_| !args.simulate));
    }
    let place = args.state.place(loaded)?.0;
    let flush = configured.map_or(FLUSH, |storage| storage.flush);
    Ok(Some(StoreConfig::new(place, flush)))
}

/// Reports services that are unreachable.
struct ServiceMonitor {
    keeping: Option<Persistence>,
    agent: Option<Agent>,
    shared: Option<(Arc<Shared>, OnFailure)>,
}

impl ServiceMonitor {
    /// Prints each change of a service's availability.
    async fn tell(self) {
        let mut tick = tokio::time::interval(LOOK);
        // Services get a moment to connect.
        tick.tick().await;
        let mut reported = [const { None }; 3];
        loop {
            tick.tick().await;
            let now = [self.of_store(), self.of_bus(), self.of_limits()];
            for (text, reported) in now.iter().zip(&reported) {
                if let Some(text) = text.as_ref().filter(|_| text != reported) {
                    notify(text);
                }
            }
            reported = now;
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

/// Applies changes of the configuration file; an invalid file is ignored.
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

/// Prints the result of a reload.
fn tell(status: &ReloadStatus) {
    if let Some(refused) = &status.refused {
        return notify(&format_args!(
            "the configuration is invalid, the previous one stays in use:\n{refused}"
        ));
    }
    if !status.changed.is_empty() {
        notify(&format_args!("configuration changed: {}", status.changed.join(", ")));
    }
    if !status.needs_restart.is_empty() {
        let paths = status.needs_restart.join(", ");
        notify(&format_args!("takes effect with the next run: {paths}"));
    }
}

/// The interval of availability checks.
const LOOK: Duration = Duration::from_secs(1);

/// The default flush interval.
const FLUSH: Duration = Duration::from_secs(1);
