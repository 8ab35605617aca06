use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use wildmatch::WildMatch;

use super::StateArgs;
use super::place::Place;
use super::show::figures::KeyFigures;
use crate::terminal::printable;
use tollgate::Timestamp;
use tollgate::limiter::{BucketChanges, KeyChanges, KeySnapshot, Limiter, NamedQuota, QuotaOrigin};
use tollgate::store::State;

/// The limits of the configuration, and what a store says was used of them: a limiter that stands
/// still, which nobody else sees.
pub(super) struct Stored {
    /// The configuration file, if there is one.
    pub(super) config: Option<PathBuf>,
    place: Place,
    /// Everything that was used is used of it.
    pub(super) limiter: Limiter,
    keys: HashMap<String, KeySnapshot>,
}

impl Stored {
    /// Reads the configuration and the state, and writes nothing.
    ///
    /// # Errors
    /// Says which file can't be read, and why.
    pub(super) fn read(args: &StateArgs) -> Result<Self, String> {
        let loaded = args.config.load()?;
        let place = args.place(&loaded)?;
        let limiter = loaded.config.builder().build().map_err(|error| error.to_string())?;
        let state = place.peek(limiter.now(), limiter.state().boot());
        let state = state.map_err(|error| error.to_string())?;
        let config = loaded.path;
        fill(&limiter, &state, config.is_some() || !loaded.config.quotas.is_empty());
        let keys = state.keys.into_iter().map(|key| (key.key.clone(), key)).collect();
        Ok(Self { config, place, limiter, keys })
    }

    /// The file of state, as it is told.
    pub(super) fn path(&self) -> String {
        printable(&self.place.path().display().to_string())
    }

    /// Whether anybody has kept anything yet.
    pub(super) fn exists(&self) -> bool {
        self.place.exists()
    }

    /// The keys of which something is kept, sorted.
    pub(super) fn kept(&self) -> Vec<&str> {
        let mut kept: Vec<_> = self.keys.keys().map(String::as_str).collect();
        kept.sort_unstable();
        kept
    }

    /// Forgets what was used of a key, or of all: in the file, and through it in running programs.
    ///
    /// # Errors
    /// Says what of the file can't be read or written.
    pub(super) fn reset(&self, key: Option<&str>) -> Result<(), String> {
        let reset = self.place.reset(key, self.now(), self.limiter.state().boot());
        reset.map_err(|error| error.to_string())
    }

    /// Returns the limiter's time.
    pub(super) fn now(&self) -> Timestamp {
        self.limiter.now()
    }

    /// The names of all keys that are kept or configured, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let known = self.limiter.state().keys().into_iter().map(String::from);
        known.chain(self.keys.keys().cloned()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The figures of the keys that one of these globs names, or of all if there are none; and of the
    /// names among them that fall under a quota, used or not.
    pub(super) fn figures(&self, asked: &[String]) -> Vec<KeyFigures> {
        let globs: Vec<_> = asked.iter().map(|glob| WildMatch::new(glob)).collect();
        let named = |key: &String| globs.is_empty() || globs.iter().any(|glob| glob.matches(key));
        let mut names = self.names();
        names.retain(named);
        names.extend(asked.iter().filter(|name| self.has_quota(name)).cloned());
        names.sort_unstable();
        names.dedup();
        names.iter().map(|key| self.key(key)).collect()
    }

    /// Whether a name is one of a key that falls under a quota.
    fn has_quota(&self, name: &str) -> bool {
        !name.contains(['*', '?']) && self.limiter.quotas().name_of(name).is_some()
    }

    /// The figures of one key.
    pub(super) fn key(&self, key: &str) -> KeyFigures {
        let quota = self.limiter.quotas().name_of(key).map(String::from);
        KeyFigures::new(key, quota, &self.limiter.stats(key), self.keys.get(key), self.now())
    }
}

/// Makes a limiter that has used what a state says. Where there is a configuration, quotas that an
/// older one had are no longer any.
fn fill(limiter: &Limiter, state: &State, configured: bool) {
    let current = |quota: &&NamedQuota| !configured || quota.origin != QuotaOrigin::Configured;
    // A limiter restores what was set, and takes what was configured to be known.
    let mut quotas: Vec<_> = state.quotas.iter().filter(current).cloned().collect();
    quotas.iter_mut().for_each(|quota| quota.origin = QuotaOrigin::Set);
    limiter.quotas().restore(&quotas);
    let mut taken = state.keys.clone();
    // A limiter that takes over what was held counts it as taken; here its holders may be alive.
    taken.iter_mut().flat_map(|key| &mut key.buckets).for_each(|bucket| bucket.saved.held = 0);
    limiter.state().absorb(&taken);
    limiter.state().apply_changes(&state.keys.iter().map(held).collect::<Vec<_>>());
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
