use std::time::Duration;

use tokio::task::JoinHandle;

use super::BatchArgs;
use super::batch_run::config;
use crate::batch::Job;
use crate::batch::progress::say;
use crate::config::{Loaded, Reloading, ReloadingStatus, Storage};
use crate::limiter::Limiter;
use crate::store::Keeping;

/// What goes with the limiter of a run: its store, and the file of its configuration, which may change.
pub(super) struct Kept {
    keeping: Option<Keeping>,
    trouble: Option<JoinHandle<()>>,
    _reloading: Reloading,
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
        let keeping = storage.map(|storage| storage.keep(limiter)).transpose();
        let keeping = keeping.map_err(|error| error.to_string())?;
        let trouble = keeping.clone().map(|keeping| tokio::spawn(tell_trouble(keeping)));
        let reloading = follow(args, loaded, job, limiter)?;
        Ok(Self { keeping, trouble, _reloading: reloading })
    }

    /// Writes down what is left to be.
    pub(super) fn end(self) {
        if let Some(trouble) = self.trouble {
            trouble.abort();
        }
        if let Some(Err(error)) = self.keeping.map(|keeping| keeping.flush_now()) {
            say(&format_args!("what this run used last is not kept: {error}"));
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

/// Says once for each kind of trouble that state can't be kept.
async fn tell_trouble(keeping: Keeping) {
    let mut tick = tokio::time::interval(FLUSH);
    let mut told = None;
    loop {
        tick.tick().await;
        let trouble = keeping.status().trouble.map(|error| error.to_string());
        if let Some(text) = trouble.as_ref().filter(|_| trouble != told) {
            say(&format_args!("state can't be kept, and limits go on in memory: {text}"));
        }
        told = trouble;
    }
}

/// Keeps the limiter at what the file says; one that is wrong changes nothing.
fn follow(
    args: &BatchArgs,
    loaded: &Loaded,
    job: &Job,
    limiter: &Limiter,
) -> Result<Reloading, String> {
    let (args, profile) = (args.clone(), job.profile);
    let adjusted = move |new| config(&args, &new, profile);
    let reloading = Reloading::start_with(loaded, limiter, adjusted, tell);
    reloading.map_err(|error| format!("the configuration can't be followed: {error}"))
}

/// Says what a change of the file has changed.
fn tell(status: &ReloadingStatus) {
    if let Some(refused) = &status.refused {
        return say(&format_args!("the configuration before stays in use:\n{refused}"));
    }
    if !status.changed.is_empty() {
        say(&format_args!("the configuration has changed: {}", status.changed.join(", ")));
    }
    if !status.needs_restart.is_empty() {
        let paths = status.needs_restart.join(", ");
        say(&format_args!("used with the next run only: {paths}"));
    }
}

/// How often what changed is written, where nobody says.
const FLUSH: Duration = Duration::from_secs(1);
