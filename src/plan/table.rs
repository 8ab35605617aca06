use std::sync::Arc;

use super::named_quota::{NamedQuota, QuotaOrigin};
use super::pattern::Pattern;
use super::plan::Plan;
use super::rows::Rows;
use super::unknown_key::UnknownKey;
use crate::provider::Profile;
use crate::quota::{Key, Limit, Margin, Quota, Share, UnknownZone};

/// Which quota a key has: its own, else the most specific glob's, else the first regular
/// expression's, else a provider's built-in one, else what the policy for unknown keys says.
#[derive(Debug)]
pub(crate) struct QuotaTable {
    own: Rows<Row>,
    built_in: Rows<Row>,
    profiles: Vec<Profile>,
    /// For keys that nobody knows; `None` if they are refused.
    fallback: Option<Row>,
    margin: Margin,
    /// Of every limit, whoever set it.
    share: Share,
    rows: u32,
    /// Increases whenever a quota is set, learned or removed.
    pub(crate) changes: u64,
}

/// Where the buckets of a key are, and the plan that they follow.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) key: Key,
    pub(crate) plan: Arc<Plan>,
}

#[derive(Debug)]
pub(crate) struct Row {
    /// The key, or the pattern of keys, that it is for.
    name: Key,
    profile: Option<Profile>,
    /// As it was given, the share not taken of it; and by whom.
    quota: Quota,
    origin: QuotaOrigin,
    pub(crate) plan: Arc<Plan>,
    /// The key of the one set of buckets that all keys of this row share, where they do.
    shared: Option<Key>,
}

impl QuotaTable {
    pub(crate) fn new(
        profiles: &[Profile],
        unknown: &UnknownKey,
        margin: Margin,
        share: Share,
    ) -> Result<Self, UnknownZone> {
        let mut quotas = Self {
            own: Rows::default(),
            built_in: Rows::default(),
            profiles: Vec::new(),
            fallback: None,
            margin,
            share,
            rows: 0,
            changes: 0,
        };
        profiles.iter().try_for_each(|&profile| quotas.add_provider(profile, 0))?;
        quotas.set_unknown(unknown.clone(), 0);
        Ok(quotas)
    }

    /// Sets the policy for unknown keys.
    pub(crate) fn set_unknown(&mut self, unknown: UnknownKey, version: u32) {
        let profile = self.profiles.first().copied();
        self.fallback = match unknown {
            UnknownKey::Allow => Some(self.nobody(Quota::new(), version)),
            UnknownKey::Refuse => None,
            UnknownKey::Learn => Some(self.nobody(Quota::new().concurrency(1), version)),
            UnknownKey::Quota(quota) => {
                Some(self.row("*", &quota, profile, (QuotaOrigin::Configured, version)).unnamed())
            }
        };
    }

    fn nobody(&mut self, quota: Quota, version: u32) -> Row {
        self.rows += 1;
        let plan = Arc::new(Plan::unknown(&quota, (self.rows, version)));
        let name = Key::default();
        Row { name, profile: None, quota, origin: QuotaOrigin::Configured, plan, shared: None }
    }

    /// Loads a profile behind those that are there: all of it, or nothing.
    pub(crate) fn add_provider(
        &mut self,
        profile: Profile,
        version: u32,
    ) -> Result<(), UnknownZone> {
        let quotas = profile.quotas().iter().map(|default| Ok((default.pattern, default.quota()?)));
        let quotas = quotas.collect::<Result<Vec<_>, _>>()?;
        self.profiles.push(profile);
        for (pattern, quota) in quotas {
            if self.built_in.named(pattern).is_none() {
                let by = (QuotaOrigin::Configured, version);
                let row = self.row(pattern, &quota, Some(profile), by);
                self.built_in.insert(pattern, row);
            }
        }
        Ok(())
    }

    /// Sets the quota of a key, of a glob, or of a regular expression.
    pub(crate) fn set(&mut self, name: &str, quota: &Quota, by: (QuotaOrigin, u32)) {
        let profile = self.profile(name);
        let row = self.row(name, quota, profile, by);
        self.own.insert(name, row);
        self.changes += 1;
    }

    /// The same, unless there is one of this name.
    pub(crate) fn restore(&mut self, kept: &NamedQuota, version: u32) -> bool {
        let is_new = self.own.named(&kept.name).is_none();
        if is_new {
            self.set(&kept.name, &kept.quota, (kept.origin, version));
        }
        is_new
    }

    /// Takes a quota away by its name; says whether there was one.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let removed = self.own.remove(name);
        self.changes += u64::from(removed);
        removed
    }

    /// All but the built-in ones, sorted by name.
    pub(crate) fn list(&self) -> Vec<NamedQuota> {
        let all = self.own.iter();
        let named = |(name, row): (_, &Row)| NamedQuota::new(name, row.quota.clone(), row.origin);
        let mut all: Vec<_> = all.map(named).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The one of them that has this very name.
    pub(crate) fn of_name(&self, name: &str) -> Option<NamedQuota> {
        let row = self.own.named(name)?;
        Some(NamedQuota::new(row.name.as_str(), row.quota.clone(), row.origin))
    }

    /// Returns the number of quotas, without the built-in ones.
    pub(crate) fn len(&self) -> usize {
        self.own.len()
    }

    /// Sets the quota that a response teaches, if it teaches one; says what it is, and whether the
    /// key had none.
    pub(crate) fn learn(
        &mut self,
        key: &str,
        limits: &[Limit],
        version: u32,
    ) -> Option<(Quota, bool)> {
        let quota = self.lesson(key, limits)?;
        let first = self.find(key).is_none();
        self.set(key, &quota, (QuotaOrigin::Learned, version));
        Some((quota, first))
    }

    /// The quota that these limits teach of a key: all of it where nobody has set one, and else new
    /// amounts of what was learned before. A provider's built-in quota is a guess at the account's,
    /// and gives way to any limits. Another window is only taken for a dimension that has none:
    /// headers don't say theirs, and it may be guessed wrong.
    pub(crate) fn lesson(&self, key: &str, limits: &[Limit]) -> Option<Quota> {
        let of_all = |quota, limit: &Limit| Quota::limit(quota, limit.clone());
        let learned = |row: &&Row| row.origin == QuotaOrigin::Learned;
        let Some(Row { quota: old, .. }) = self.own.named(key).filter(learned) else {
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
    pub(crate) fn home(&self, key: &str) -> Option<Home> {
        self.home_or(key, None)
    }

    /// The same of a key that has this plan if no quota names it.
    pub(crate) fn home_or(&self, key: &str, default: Option<&Arc<Plan>>) -> Option<Home> {
        if let (None, Some(plan)) = (self.find(key), default) {
            return Some(Home { key: key.into(), plan: Arc::clone(plan) });
        }
        let row = self.find(key).or(self.fallback.as_ref())?;
        let key = row.shared.clone().unwrap_or_else(|| key.into());
        Some(Home { key, plan: Arc::clone(&row.plan) })
    }

    /// A plan for limits that came with a request.
    pub(crate) fn given(&self, key: &str, quota: &Quota, version: u32) -> Plan {
        let profile = self.profile(key);
        Plan::new(quota, profile.as_ref(), self.margin, (NO_ROW, version)).given(quota.clone())
    }

    /// The name of the quota that a key has, if it has one.
    pub(crate) fn name_of(&self, key: &str) -> Option<&Key> {
        self.find(key).map(|row| &row.name)
    }

    /// The keys that have a quota of their own, by name.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Key> {
        self.own.exact()
    }

    /// The profile that a key falls under: the first whose built-in quotas name it, else the first.
    pub(crate) fn profile(&self, key: &str) -> Option<Profile> {
        let named = self.built_in.find(key).and_then(|row| row.profile);
        named.or_else(|| self.profiles.first().copied())
    }

    fn find(&self, key: &str) -> Option<&Row> {
        self.own.find(key).or_else(|| self.built_in.find(key))
    }

    fn row(
        &mut self,
        name: &str,
        quota: &Quota,
        profile: Option<Profile>,
        (origin, version): (QuotaOrigin, u32),
    ) -> Row {
        self.rows += 1;
        let part = quota.clone().with_share(self.share);
        let plan = Plan::new(&part, profile.as_ref(), self.margin, (self.rows, version));
        let plan = if origin == QuotaOrigin::Learned { plan.lenient() } else { plan };
        let shared = quota.is_shared().then(|| Pattern::of(name).name());
        // What responses teach of keys is as endless as the keys that are sent.
        let is_own = shared.is_some() || !Pattern::is_one(name);
        let plan = match is_own && origin != QuotaOrigin::Learned {
            true => plan.reserved(),
            false => plan,
        };
        Row {
            name: name.into(),
            profile,
            quota: quota.clone(),
            origin,
            plan: Arc::new(plan),
            shared,
        }
    }
}

impl Row {
    /// The same, for keys that no quota names.
    fn unnamed(mut self) -> Self {
        self.plan = Arc::new(Arc::unwrap_or_clone(self.plan).unnamed());
        self
    }
}

/// Of plans whose limits came with a request.
const NO_ROW: u32 = u32::MAX;
