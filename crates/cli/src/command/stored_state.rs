use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use wildmatch::WildMatch;

use super::StateArgs;
use super::shared_usage::SharedUsage;
use super::show::key_usage::{KeyUsage, Rfc3339};
use super::state_file::StateFile;
use crate::terminal::printable;
use paceline::Timestamp;
use paceline::limiter::{BucketChanges, KeyChanges, KeySnapshot, Limiter, NamedQuota, QuotaOrigin};
use paceline::store::State;
use paceline_limiter::seam;

/// A limiter with the limits of the configuration and a copy of the stored state, independent of
/// running programs. If limits are shared with other machines, usage is that of their store.
pub(super) struct StoredState<'a> {
    /// The configuration file, if any.
    pub(super) config: Option<PathBuf>,
    file: StateFile,
    /// True if neither the arguments nor the configuration name the file.
    pub(super) is_default: bool,
    /// The limiter, with the usage of the state.
    pub(super) limiter: Limiter,
    keys: HashMap<String, KeySnapshot>,
    /// The longest wait by `waiting.max_wait`, if it is set.
    max_wait: Option<Duration>,
    shared: Option<&'a SharedUsage>,
}

impl<'a> StoredState<'a> {
    /// Reads the configuration and the state, and writes nothing.
    ///
    /// # Errors
    /// Returns an error that names the unreadable file.
    pub(super) fn read(args: &StateArgs, shared: Option<&'a SharedUsage>) -> Result<Self, String> {
        let loaded = args.config.load()?;
        let file = args.state_file(&loaded)?;
        let is_default = args.store.is_none() && loaded.config.store.is_none();
        let builder = loaded.config.builder();
        let builder = match shared {
            Some(shared) => builder.backend(shared.backend()),
            None => builder,
        };
        let limiter = builder.build().map_err(|error| error.to_string())?;
        let state = file.peek(limiter.now(), seam::boot(&limiter));
        let mut state = state.map_err(|error| error.to_string())?;
        if shared.is_some() {
            state.keys.iter_mut().for_each(|key| key.buckets.clear());
        }
        let config = loaded.path;
        restore(&limiter, &state, config.is_some() || !loaded.config.quotas.is_empty());
        let keys = state.keys.into_iter().map(|key| (key.key.clone(), key)).collect();
        let max_wait = loaded.config.waiting.max_wait_or(None);
        Ok(Self { config, file, is_default, limiter, keys, max_wait, shared })
    }

    /// Asks the store of shared limits for the usage of these keys, if there is one.
    ///
    /// # Errors
    /// Returns the reason if the store has never answered about one of them.
    pub(super) async fn refresh(&self, keys: &[&str]) -> Result<(), String> {
        match self.shared {
            Some(shared) => shared.refresh(&self.limiter, keys).await,
            None => Ok(()),
        }
    }

    /// Returns where usage is kept: the path of the state file, or the store of shared limits.
    pub(super) fn place(&self) -> String {
        self.shared.map_or_else(|| self.path(), |shared| printable(shared.place()))
    }

    /// Returns the path of the state file, printable.
    pub(super) fn path(&self) -> String {
        printable(&self.file.path().display().to_string())
    }

    /// Returns true if the state file exists.
    pub(super) fn exists(&self) -> bool {
        self.file.exists()
    }

    /// Returns the keys that can be reset, sorted: those in the state, or those that this program knows of
    /// the shared ones.
    pub(super) fn resettable(&self) -> Vec<String> {
        match self.shared {
            Some(_) => self.names(),
            None => self.keys.keys().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
        }
    }

    /// Returns true if a key can be reset by its name. Of shared keys, this program may know only the quota.
    pub(super) fn is_resettable(&self, key: &str) -> bool {
        self.keys.contains_key(key) || self.shared.is_some() && self.has_quota(key)
    }

    /// Resets the usage of a key, or of all resettable keys: in the file and in programs that share it, and
    /// in the store of shared limits.
    ///
    /// # Errors
    /// Returns an error of the state file or of the store.
    pub(super) async fn reset(&self, key: Option<&str>) -> Result<(), String> {
        if key.map_or(!self.keys.is_empty(), |key| self.keys.contains_key(key)) {
            let reset = self.file.reset(key, self.now(), seam::boot(&self.limiter));
            reset.map_err(|error| error.to_string())?;
        }
        match self.shared {
            Some(shared) => shared.reset(&self.limiter, key).await,
            None => Ok(()),
        }
    }

    /// Returns the limiter's time.
    pub(super) fn now(&self) -> Timestamp {
        self.limiter.now()
    }

    /// Returns the keys in the state and the configuration, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let known = self.limiter.state().keys().into_iter().map(String::from);
        known.chain(self.keys.keys().cloned()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the usage of keys that match one of the globs, or of all keys if there are none; and
    /// of names with a quota, used or not.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub(super) async fn key_usage(&self, requested: &[String]) -> Result<Vec<KeyUsage>, String> {
        let globs: Vec<_> = requested.iter().map(|glob| WildMatch::new(glob)).collect();
        let named = |key: &String| globs.is_empty() || globs.iter().any(|glob| glob.matches(key));
        let mut names = self.names();
        names.retain(named);
        names.extend(requested.iter().filter(|name| self.has_quota(name)).cloned());
        names.sort_unstable();
        names.dedup();
        self.refresh(&names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        Ok(names.iter().map(|key| self.key(key)).collect())
    }

    /// Returns true if a name is not a glob and has a quota.
    fn has_quota(&self, name: &str) -> bool {
        !name.contains(['*', '?']) && self.limiter.quotas().name_of(name).is_some()
    }

    /// Returns the usage of one key.
    pub(super) fn key(&self, key: &str) -> KeyUsage {
        let quota = self.limiter.quotas().name_of(key).map(String::from);
        let stats = self.limiter.stats(key);
        let usage = KeyUsage::new(key, quota, &stats, self.keys.get(key), self.now());
        let of_quota = self.limiter.quotas().of(key).longest_wait();
        let max_wait = of_quota.into_iter().chain(self.max_wait).min();
        KeyUsage { max_wait, as_of: self.shared.and(stats.as_of).map(Rfc3339), ..usage }
    }
}

/// Restores the state in a limiter. If there is a configuration, quotas of older configurations are
/// ignored.
fn restore(limiter: &Limiter, state: &State, configured: bool) {
    let current = |quota: &&NamedQuota| !configured || quota.origin != QuotaOrigin::Configured;
    // A limiter restores quotas with the origin `Set`, and expects configured quotas to be known.
    let mut quotas: Vec<_> = state.quotas.iter().filter(current).cloned().collect();
    quotas.iter_mut().for_each(|quota| quota.origin = QuotaOrigin::Set);
    seam::restore_quotas(limiter, &quotas);
    // The program that wrote these has read them as models from requests, and counted buckets that refill.
    for model in state.keys.iter().filter(|key| key.buckets.iter().any(|b| b.refill > 0)) {
        if let Some(rules) = limiter.quotas().rules_of(&model.key) {
            seam::count_as_model(limiter, &model.key, rules.name());
        }
    }
    let mut taken = state.keys.clone();
    // `absorb` counts reservations as used; here, their holders may be running.
    taken.iter_mut().flat_map(|key| &mut key.buckets).for_each(|bucket| bucket.saved.held = 0);
    // A learned rate would hold back the first request; here, the programs that learned it may be running.
    taken.iter_mut().for_each(|key| key.learned.clear());
    limiter.state().absorb(&taken);
    seam::apply_changes(limiter, &state.keys.iter().map(held).collect::<Vec<_>>());
}

fn held(key: &KeySnapshot) -> KeyChanges {
    let buckets = key.buckets.iter().filter(|bucket| bucket.saved.held > 0).map(|bucket| {
        let (dimension, window) = (bucket.dimension.clone(), bucket.window);
        BucketChanges::new(dimension, window, Vec::new(), bucket.saved.held)
    });
    let mut changes = KeyChanges::new(key.key.as_str());
    changes.buckets = buckets.collect();
    changes
}
