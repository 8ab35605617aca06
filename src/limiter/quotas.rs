use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;
use wildmatch::WildMatch;

use super::builder::UnknownKey;
use super::plan::Plan;
use crate::engine::Margin;
use crate::provider::Profile;
use crate::quota::{Limit, Quota, Share};

/// Which quota a key has: its own, else the most specific glob's, else a provider's built-in one,
/// else what the policy for unknown keys says.
#[derive(Debug)]
pub(super) struct Quotas {
    own: Rows,
    built_in: Rows,
    /// What responses have taught, as they said it.
    learned: HashMap<CompactString, Quota>,
    profiles: Vec<Profile>,
    /// For keys that nobody knows; `None` if they are refused.
    fallback: Option<Row>,
    margin: Margin,
    /// Of every limit, whoever set it.
    share: Share,
    rows: u32,
}

/// Where the buckets of a key are, and the plan that they follow.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) key: CompactString,
    pub(super) plan: Arc<Plan>,
}

/// Rows by exact name, and globs from the most specific to the least.
#[derive(Debug, Default)]
struct Rows {
    exact: HashMap<CompactString, Row>,
    globs: Vec<(WildMatch, Row)>,
}

#[derive(Debug)]
struct Row {
    /// The key, or the pattern of keys, that it is for.
    name: CompactString,
    profile: Option<Profile>,
    plan: Arc<Plan>,
    /// The key of the one set of buckets that all keys of this row share, where they do.
    shared: Option<CompactString>,
}

impl Quotas {
    pub(super) fn new(
        profiles: &[Profile],
        unknown: &UnknownKey,
        margin: Margin,
        share: Share,
    ) -> Self {
        let mut quotas = Self {
            own: Rows::default(),
            built_in: Rows::default(),
            learned: HashMap::new(),
            profiles: Vec::new(),
            fallback: None,
            margin,
            share,
            rows: 0,
        };
        profiles.iter().for_each(|&profile| quotas.add_provider(profile, 0));
        let nobody = |quota| {
            let plan = Arc::new(Plan::unknown(&quota));
            Some(Row { name: CompactString::default(), profile: None, plan, shared: None })
        };
        quotas.fallback = match unknown {
            UnknownKey::Allow => nobody(Quota::new()),
            UnknownKey::Refuse => None,
            UnknownKey::Learn => nobody(Quota::new().concurrency(1)),
            UnknownKey::Quota(quota) => {
                let profile = quotas.profiles.first().copied();
                Some(quotas.row("*", quota, profile, 0))
            }
        };
        quotas
    }

    /// Loads a profile behind those that are there.
    pub(super) fn add_provider(&mut self, profile: Profile, version: u32) {
        self.profiles.push(profile);
        for default in profile.quotas() {
            if self.built_in.named(default.pattern).is_none() {
                let row = self.row(default.pattern, &default.quota(), Some(profile), version);
                self.built_in.insert(default.pattern, row);
            }
        }
    }

    /// Sets the quota of a key or of a glob.
    pub(super) fn set(&mut self, pattern: &str, quota: &Quota, version: u32) {
        self.learned.remove(pattern);
        self.put(pattern, quota, version);
    }

    fn put(&mut self, pattern: &str, quota: &Quota, version: u32) {
        let profile = self.profile(pattern);
        let row = self.row(pattern, quota, profile, version);
        self.own.insert(pattern, row);
    }

    /// Takes the quota of a key or of a glob away; says whether there was one.
    pub(super) fn remove(&mut self, pattern: &str) -> bool {
        self.learned.remove(pattern);
        self.own.remove(pattern)
    }

    /// Sets the quota that a response teaches, if it teaches one; says what it is, and whether the
    /// key had none.
    pub(super) fn learn(
        &mut self,
        key: &str,
        limits: &[Limit],
        version: u32,
    ) -> Option<(Quota, bool)> {
        let quota = self.lesson(key, limits)?;
        let first = self.find(key).is_none();
        self.put(key, &quota, version);
        self.learned.insert(key.into(), quota.clone());
        Some((quota, first))
    }

    /// The quota that these limits teach of a key: all of it where nobody has set one, and else new
    /// amounts of what was learned before. A provider's built-in quota is a guess at the account's,
    /// and gives way to any limits. Another window is only taken for a dimension that has none:
    /// headers don't say theirs, and it may be guessed wrong.
    pub(super) fn lesson(&self, key: &str, limits: &[Limit]) -> Option<Quota> {
        let of_all = |quota, limit: &Limit| Quota::limit(quota, limit.clone());
        let Some(old) = self.learned.get(key) else {
            let teaches = match (self.own.find(key), self.built_in.find(key)) {
                (Some(_), _) => false,
                (None, Some(_)) => !limits.is_empty(),
                (None, None) => self.fallback.as_ref().is_some_and(|row| !row.plan.known),
            };
            return teaches.then(|| limits.iter().fold(Quota::new(), of_all));
        };
        let follows = |new: &&Limit| {
            let mut same = old.limits().iter().filter(|old| old.dimension() == new.dimension());
            same.clone().next().is_none() || same.any(|old| old.window() == new.window())
        };
        let quota = limits.iter().filter(follows).fold(old.clone(), of_all);
        (quota != *old).then_some(quota)
    }

    /// Where a key's buckets are; `None` if the key is unknown and unknown keys are refused.
    pub(super) fn home(&self, key: &str) -> Option<Home> {
        let row = self.find(key).or(self.fallback.as_ref())?;
        let key = row.shared.clone().unwrap_or_else(|| key.into());
        Some(Home { key, plan: Arc::clone(&row.plan) })
    }

    /// A plan for limits that came with a request.
    pub(super) fn given(&self, key: &str, quota: &Quota, version: u32) -> Plan {
        let profile = self.profile(key);
        Plan::new(quota, profile.as_ref(), self.margin, (NO_ROW, version)).given(quota.clone())
    }

    /// The name of the quota that a key has, if it has one.
    pub(super) fn name_of(&self, key: &str) -> Option<&CompactString> {
        self.find(key).map(|row| &row.name)
    }

    /// The keys that have a quota of their own, by name.
    pub(super) fn named(&self) -> impl Iterator<Item = &CompactString> {
        self.own.exact.keys()
    }

    /// The profile that a key falls under: the first whose built-in quotas name it, else the first.
    pub(super) fn profile(&self, key: &str) -> Option<Profile> {
        let named = self.built_in.find(key).and_then(|row| row.profile);
        named.or_else(|| self.profiles.first().copied())
    }

    fn find(&self, key: &str) -> Option<&Row> {
        self.own.find(key).or_else(|| self.built_in.find(key))
    }

    fn row(&mut self, key: &str, quota: &Quota, profile: Option<Profile>, version: u32) -> Row {
        self.rows += 1;
        let quota = quota.clone().with_share(self.share);
        let plan = Plan::new(&quota, profile.as_ref(), self.margin, (self.rows, version));
        let shared = quota.is_shared().then(|| WildMatch::new(key).to_string().into());
        Row { name: key.into(), profile, plan: Arc::new(plan), shared }
    }
}

impl Rows {
    fn insert(&mut self, pattern: &str, row: Row) {
        if !is_glob(pattern) {
            self.exact.insert(pattern.into(), row);
            return;
        }
        self.remove(pattern);
        let glob = WildMatch::new(pattern);
        let at = self.globs.partition_point(|(other, _)| specificity(other) >= specificity(&glob));
        self.globs.insert(at, (glob, row));
    }

    fn remove(&mut self, pattern: &str) -> bool {
        let (before, removed) = (self.globs.len(), WildMatch::new(pattern));
        self.globs.retain(|(glob, _)| *glob != removed);
        self.exact.remove(pattern).is_some() || self.globs.len() < before
    }

    /// The row of this very name: globs are the names of what is shared under them.
    fn named(&self, pattern: &str) -> Option<&Row> {
        let glob = || {
            let name = is_glob(pattern).then(|| WildMatch::new(pattern))?;
            self.globs.iter().find(|(glob, _)| *glob == name).map(|(_, row)| row)
        };
        self.exact.get(pattern).or_else(glob)
    }

    fn find(&self, key: &str) -> Option<&Row> {
        let glob = || self.globs.iter().find(|(glob, _)| glob.matches(key)).map(|(_, row)| row);
        self.named(key).or_else(glob)
    }
}

/// Of plans whose limits came with a request.
const NO_ROW: u32 = u32::MAX;

/// Whether a quota of this name is for all keys that it matches.
pub(super) fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// The number of characters that a glob names: the more, the more specific.
fn specificity(glob: &WildMatch) -> usize {
    glob.to_string().chars().filter(|c| !matches!(c, '*' | '?')).count()
}
