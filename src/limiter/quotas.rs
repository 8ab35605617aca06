use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;
use wildmatch::WildMatch;

use super::builder::UnknownKey;
use super::plan::Plan;
use crate::engine::Margin;
use crate::provider::Profile;
use crate::quota::{Quota, Share};

/// Which quota a key has: its own, else the most specific glob's, else a provider's built-in one,
/// else what the policy for unknown keys says.
#[derive(Debug)]
pub(super) struct Quotas {
    own: Rows,
    built_in: Rows,
    profiles: Vec<Profile>,
    /// For keys that nobody knows; `None` if they are refused.
    fallback: Option<Arc<Plan>>,
    margin: Margin,
    /// Of every limit, whoever set it.
    share: Share,
    version: u32,
}

/// Rows by exact name, and globs from the most specific to the least.
#[derive(Debug, Default)]
struct Rows {
    exact: HashMap<CompactString, Row>,
    globs: Vec<(WildMatch, Row)>,
}

#[derive(Debug)]
struct Row {
    profile: Option<Profile>,
    plan: Arc<Plan>,
}

impl Quotas {
    pub(super) fn new(
        profiles: Vec<Profile>,
        unknown: &UnknownKey,
        margin: Margin,
        share: Share,
    ) -> Self {
        let (own, built_in) = (Rows::default(), Rows::default());
        let mut quotas =
            Self { own, built_in, profiles, fallback: None, margin, share, version: 0 };
        for profile in quotas.profiles.clone() {
            for default in profile.quotas() {
                let row = quotas.row(&default.quota(), Some(profile));
                quotas.built_in.insert(default.pattern, row);
            }
        }
        quotas.fallback = match unknown {
            UnknownKey::Allow => Some(Arc::new(Plan::unknown(&Quota::new()))),
            UnknownKey::Refuse => None,
            UnknownKey::Learn => Some(Arc::new(Plan::unknown(&Quota::new().concurrency(1)))),
            UnknownKey::Quota(quota) => {
                Some(quotas.row(quota, quotas.profiles.first().copied()).plan)
            }
        };
        quotas
    }

    /// Sets the quota of a key or of a glob, in a new version of the quotas.
    pub(super) fn set(&mut self, pattern: &str, quota: &Quota) {
        self.version += 1;
        let profile = self.profile(pattern);
        let row = self.row(quota, profile);
        self.own.insert(pattern, row);
    }

    /// Sets the quota of a key that has none so far; says whether it was the first to do so.
    pub(super) fn learn(&mut self, key: &str, quota: &Quota) -> bool {
        let known = self.own.find(key).or_else(|| self.built_in.find(key)).is_some();
        if !known {
            self.set(key, quota);
        }
        !known
    }

    /// The plan of a key; `None` if the key is unknown and unknown keys are refused.
    pub(super) fn plan(&self, key: &str) -> Option<Arc<Plan>> {
        let row = self.own.find(key).or_else(|| self.built_in.find(key));
        row.map(|row| &row.plan).or(self.fallback.as_ref()).cloned()
    }

    /// The profile that a key falls under: the first whose built-in quotas name it, else the first.
    pub(super) fn profile(&self, key: &str) -> Option<Profile> {
        let named = self.built_in.find(key).and_then(|row| row.profile);
        named.or_else(|| self.profiles.first().copied())
    }

    fn row(&self, quota: &Quota, profile: Option<Profile>) -> Row {
        let quota = quota.clone().with_share(self.share);
        let plan = Plan::new(&quota, profile.as_ref(), self.margin, self.version);
        Row { profile, plan: Arc::new(plan) }
    }
}

impl Rows {
    fn insert(&mut self, pattern: &str, row: Row) {
        if !pattern.contains(['*', '?']) {
            self.exact.insert(pattern.into(), row);
            return;
        }
        let glob = WildMatch::new(pattern);
        self.globs.retain(|(other, _)| *other != glob);
        let at = self.globs.partition_point(|(other, _)| specificity(other) >= specificity(&glob));
        self.globs.insert(at, (glob, row));
    }

    fn find(&self, key: &str) -> Option<&Row> {
        self.exact
            .get(key)
            .or_else(|| self.globs.iter().find(|(glob, _)| glob.matches(key)).map(|(_, row)| row))
    }
}

/// The number of characters that a glob names: the more, the more specific.
fn specificity(glob: &WildMatch) -> usize {
    glob.to_string().chars().filter(|c| !matches!(c, '*' | '?')).count()
}
