use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::BatchArgs;
use crate::batch::Job;
use crate::terminal::notify;
use paceline::cluster::OnFailure;
use paceline::cluster::{Agent, Shared};
use paceline::limiter::Limiter;
use paceline::store::Persistence;
use paceline_config::{Loaded, ReloadStatus, Reloader, StoreConfig};

/// The services of a run: store, bus, shared limits, and reloading of the configuration.
pub(super) struct RunServices {
    persistence: Option<Persistence>,
    monitor: JoinHandle<()>,
    _reloader: Reloader,
}

impl RunServices {
    /// Restores the state of the limiter and keeps it saved, joins the bus, and reloads the
    /// configuration when it changes. `shared` are the shared limits of the limiter.
    ///
    /// # Errors
    /// Returns an error of the store, the bus or the configuration file.
    pub(super) fn start(
        args: &BatchArgs,
        loaded: &Loaded,
        job: &Job,
        limiter: &Limiter,
        shared: Option<Arc<Shared>>,
    ) -> Result<Self, String> {
        let storage = storage(args, loaded)?;
        let has_total = || limiter.quotas().list().iter().any(|quota| quota.quota.has_total());
        if storage.is_none() && !args.simulate && has_total() {
            notify(
                &"the usage of limits that never reset is lost when this run ends; set a `store`",
            );
        }
        let persistence = storage.map(|storage| storage.keep(limiter)).transpose();
        let persistence = persistence.map_err(|error| error.to_string())?;
        let agent = job.config.as_ref().map(|config| config.join(limiter)).transpose();
        let agent = agent.map_err(|error| error.to_string())?.flatten();
        let cluster = job.config.as_ref().and_then(|config| config.cluster.as_ref());
        let shared = shared.zip(cluster.map(|cluster| cluster.on_failure));
        let monitor = ServiceMonitor { persistence: persistence.clone(), agent, shared };
        let monitor = tokio::spawn(monitor.run());
        let reloader = reload_on_change(args, loaded, job, limiter)?;
        Ok(Self { persistence, monitor, _reloader: reloader })
    }

    /// Saves the remaining changes.
    pub(super) fn end(self) {
        self.monitor.abort();
        if let Some(Err(error)) = self.persistence.map(|persistence| persistence.flush_now()) {
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
    let file = args.state.state_file(loaded)?.0;
    let flush = configured.map_or(FLUSH, |storage| storage.flush);
    Ok(Some(StoreConfig::new(file, flush)))
}

/// Reports services that are unreachable.
struct ServiceMonitor {
    persistence: Option<Persistence>,
    agent: Option<Agent>,
    shared: Option<(Arc<Shared>, OnFailure)>,
}

impl ServiceMonitor {
    /// Prints each change of a service's availability.
    async fn run(self) {
        let mut tick = tokio::time::interval(CHECK_INTERVAL);
        // Gives services time to connect.
        tick.tick().await;
        let mut reported = [const { None }; 3];
        loop {
            tick.tick().await;
            let now = [self.store_problem(), self.bus_problem(), self.limits_problem()];
            for (text, reported) in now.iter().zip(&reported) {
                if let Some(text) = text.as_ref().filter(|_| text != reported) {
                    notify(text);
                }
            }
            reported = now;
        }
    }

    fn store_problem(&self) -> Option<String> {
        let trouble = self.persistence.as_ref()?.status().trouble?;
        Some(format!("the store is unavailable, usage is kept in memory: {trouble}"))
    }

    fn bus_problem(&self) -> Option<String> {
        let connected = self.agent.as_ref()?.status().bus.connected;
        let text = "the bus is unreachable: 429s of other machines are not received";
        (!connected).then(|| text.to_owned())
    }

    fn limits_problem(&self) -> Option<String> {
        let (shared, on_failure) = self.shared.as_ref()?;
        let until = match on_failure {
            OnFailure::Closed => "no requests are sent until it is back",
            OnFailure::Open => "requests are not limited until it is back",
            OnFailure::LocalShare => "this run uses its local share until it is back",
        };
        let cause = match shared.outage_cause() {
            Some(cause) => cause,
            None if shared.status().connected => return None,
            None => "not connected yet".to_owned(),
        };
        Some(format!("the store of shared limits is unavailable ({cause}): {until}"))
    }
}

/// Applies changes of the configuration file; an invalid file is ignored.
fn reload_on_change(
    args: &BatchArgs,
    loaded: &Loaded,
    job: &Job,
    limiter: &Limiter,
) -> Result<Reloader, String> {
    let (args, profile) = (args.clone(), job.profile);
    let adjusted = move |new| args.configured(&new, profile);
    let reloading = Reloader::start_with(loaded, limiter, adjusted, print_reload);
    reloading.map_err(|error| format!("configuration: cannot watch the file: {error}"))
}

/// Prints the result of a reload.
fn print_reload(status: &ReloadStatus) {
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
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The default flush interval.
const FLUSH: Duration = Duration::from_secs(1);
