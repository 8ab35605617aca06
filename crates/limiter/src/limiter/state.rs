use std::sync::Arc;

use super::attached::Attached;
use super::busiest::Busiest;
use super::denied_sample::DeniedSample;
use super::key_budget::KeyBudget;
use super::scopes::{Entries, Scopes};
use super::shared::Shared;
use super::table::KeyRef;
use super::ticket::Ticket;
use crate::answer::learned::LearnedFrom;
use crate::answer::stats::KeyStats;
use crate::backend::{BackendStatus, Measurement};
use crate::clock::Boot;
use crate::event::{Event, TARGET, Totals};
use crate::key::changes::KeyChanges;
use crate::key::limits::Granted;
use crate::key::snapshot::KeySnapshot;
use crate::plan::Plan;
use crate::quota::{Cost, Key};

/// A handle to the state of a [`Limiter`](super::Limiter), for stores, metrics and status pages.
///
/// ```
/// use paceline_limiter::{Cost, Limiter, Quota};
/// let limiter = || Limiter::builder().quota("gpt-4o", Quota::new().rpd(1)).build();
/// let before = limiter()?;
/// before.try_acquire("gpt-4o", &Cost::new())?.settle(&Cost::new());
///
/// let after = limiter()?;
/// after.state().absorb(&before.state().snapshot());
/// assert!(after.try_acquire("gpt-4o", &Cost::new()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LimiterState<'a> {
    pub(super) shared: &'a Shared,
    pub(super) budget: Option<&'a KeyBudget>,
}

impl LimiterState<'_> {
    /// Returns the keys that a quota names, and all other keys that have an entry, sorted. Idle keys are
    /// dropped gradually as new keys are added.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<_> = self.shared.core.quotas.read().named().cloned().collect();
        keys.extend(self.shared.table.shards().flat_map(|shard| shard.keys()));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns the statistics of all [`keys`](Self::keys). Each key is read at one point in time, but not
    /// all keys at the same.
    pub fn stats(&self) -> Vec<(Key, KeyStats)> {
        let stats = |key: Key| {
            let stats = self.shared.table.stats(&key);
            (key, stats)
        };
        self.keys().into_iter().map(stats).collect()
    }

    /// Drops all idle keys and returns their number.
    pub fn prune(&self) -> usize {
        self.shared.table.prune()
    }

    /// Returns the state of every key that has any, sorted by key.
    pub fn snapshot(&self) -> Vec<KeySnapshot> {
        let mut all = Vec::new();
        self.shared.table.for_each(|entry| {
            let snapshot = entry.lock().snapshot(&entry.key);
            all.extend(Some(snapshot).filter(|snapshot| !snapshot.is_fresh()));
        });
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// Adds the state of an earlier run, or of another limiter, to this one's. Buckets that a
    /// [`Backend`](super::Backend) keeps don't change: their usage is known there.
    pub fn absorb(&self, snapshot: &[KeySnapshot]) {
        let is_local = self.shared.core.is_local();
        for key in snapshot {
            self.shared.with(&key.key, self.budget, |state| state.absorb(key, is_local));
            self.restore_learned(key);
        }
    }

    /// Starts to test the limits of a key with those that were learned earlier, unless the limiter doesn't
    /// [measure](crate::limiter::Reduction::ADAPTIVE) limits.
    fn restore_learned(&self, key: &KeySnapshot) {
        if key.learned.is_empty() || !self.shared.core.is_learning() {
            return;
        }
        let mut learned = key.learned.clone();
        learned.iter_mut().for_each(|limit| limit.source = LearnedFrom::Store);
        let started = self.shared.with(&key.key, self.budget, |state| {
            state.start_with(&learned);
            (state.learned(), state.now())
        });
        let (started, now) = started.unwrap_or_default();
        for limit in started {
            tracing::info!(target: TARGET, key = key.key, "starting with {limit}, {}", limit.provenance(now));
        }
    }

    /// Returns the number of requests granted, denied and queued so far. The counts are exact, with or
    /// without subscribers, and counting takes no lock of its own.
    ///
    /// ```
    /// use paceline_limiter::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().quota("k", Quota::new().rpm(1)).build()?;
    /// let answers = [limiter.try_acquire("k", &Cost::new()), limiter.try_acquire("k", &Cost::new())];
    /// let totals = limiter.state().totals();
    /// assert_eq!((totals.granted, totals.denied, totals.waited), (1, 1, 0));
    /// # drop(answers);
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    pub fn totals(&self) -> Totals {
        self.shared.core.totals.sum()
    }

    /// Returns the statistics of the busiest of the keys that
    /// [`keys`](Self::keys) lists, at most `most` of them. Each key is read at one point in time, but
    /// not all keys at the same.
    ///
    /// Takes about a hundred ns for each key, independent of `most`. New keys of a shard, a 64th of all
    /// keys, wait while its keys are listed; each key is locked separately.
    pub fn busiest(&self, most: usize) -> Busiest {
        Busiest::of(self.shared, most)
    }

    /// Returns the status of the [`Backend`](super::Backend), or `None` if there is none or it reports
    /// none.
    pub fn backend_status(&self) -> Option<BackendStatus> {
        self.shared.core.backend.as_ref()?.status()
    }

    /// Returns the values that the [`Backend`](super::Backend), the stores and the buses report to the
    /// metrics.
    pub(crate) fn measurements(&self) -> Vec<Measurement> {
        let backend = self.shared.core.backend.as_ref().map(|backend| backend.measurements());
        let attached = self.shared.attached();
        let attached = attached.iter().flat_map(|attached| attached.measurements());
        backend.into_iter().flatten().chain(attached).collect()
    }

    /// Returns the reason for which the state is not saved, if the last write to a
    /// store failed. After [`close`](super::Limiter::close), `None` means that the state
    /// outlasts this process.
    pub fn unsaved(&self) -> Option<String> {
        self.shared.attached().iter().find_map(|attached| attached.unsaved())
    }

    /// Returns whether the file of a store was deleted or replaced while in use.
    pub fn is_store_lost(&self) -> bool {
        self.shared.attached().iter().any(|attached| attached.is_store_lost())
    }

    /// Does what [`seam::track`](crate::seam::track) says.
    pub(crate) fn track(&self) {
        if !self.shared.core.dirty.track() {
            self.shared.for_each(|key| {
                let now = key.now();
                key.track(now);
            });
        }
    }

    /// Does what [`seam::collect_changes`](crate::seam::collect_changes) says.
    pub(crate) fn collect_changes(&self) -> Vec<KeyChanges> {
        self.shared.core.dirty.collect()
    }

    /// Does what [`seam::apply_changes`](crate::seam::apply_changes) says.
    pub(crate) fn apply_changes(&self, others: &[KeyChanges]) {
        self.track();
        let core = &self.shared.core;
        let concerns = |change: &&KeyChanges| {
            change.concerns_new_key() || self.shared.table.find(&change.key).is_some()
        };
        for change in others.iter().filter(concerns) {
            let applied = self.shared.with(&change.key, self.budget, |state| {
                let renew = |plan: &Arc<Plan>| Arc::new(plan.renewed(core.next_version()));
                state.apply(change, renew, core.is_local(), core.dirty.round())
            });
            if let Some(until) = applied.flatten() {
                let (key, agent) = (change.key.clone(), Some(ANOTHER.into()));
                core.events.announce(|| Event::CoolingDown { key, until, kind: None, agent });
            }
        }
    }

    /// Does what [`seam::sample_denied`](crate::seam::sample_denied) says.
    pub(crate) fn sample_denied(&self) -> Option<DeniedSample> {
        self.shared.core.denied.take()
    }

    /// Attaches a component that is closed with the limiter.
    pub(crate) fn attach(&self, attached: Arc<dyn Attached>) {
        self.shared.attach(attached);
    }

    /// Does what [`seam::return_ticket`](crate::seam::return_ticket) says.
    pub(crate) fn return_ticket(&self, key: &str, cost: &Cost, ticket: Ticket) -> bool {
        let Some(entry) = self.shared.table.find(key).filter(|entry| entry.id == ticket.entry)
        else {
            return false;
        };
        let mut state = entry.lock();
        let cost = state.plan().clip_guesses(cost);
        let granted = Granted { version: ticket.version, at: ticket.granted_at, cost: &cost };
        state.end(granted, Some(&Cost::new().requests(0)));
        drop(state);
        let (key, reserved) = (key.into(), cost.into_owned());
        entry.core.events.send(|| Event::Settled { key, reserved, charged: None });
        true
    }

    /// Counts a key as a model that the provider of this name has read from a request, as the layer does.
    pub(crate) fn count_as_model(&self, key: &str, provider: &'static str) {
        let (core, read_by) = (&self.shared.core, Some(provider));
        let key_ref = KeyRef { read_by, ..self.shared.key_ref(key, self.budget) };
        if let (true, Ok(entry)) = (core.has_providers(), key_ref.entry()) {
            Scopes::lock(&Entries::of(entry)).count_as_model(key, read_by, core);
        }
    }

    /// Returns the clock's information about the current boot of the machine.
    pub(crate) fn boot(&self) -> Option<Boot> {
        self.shared.core.clock.boot()
    }
}

/// The agent of a cool-down that a store has brought.
const ANOTHER: &str = "another process";
