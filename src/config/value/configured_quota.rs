use crate::quota::Quota;

/// A quota of the configuration, and the keys that it is for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConfiguredQuota {
    /// The keys.
    pub keys: Keys,
    /// Their limits.
    pub quota: Quota,
}

/// Which keys a quota is for.
#[derive(Debug, Clone)]
pub enum Keys {
    /// One key, or those that a glob matches.
    Named(String),
    /// Those that a regular expression matches as a whole. Needs the feature `regex`.
    Matching(String),
}

impl ConfiguredQuota {
    /// A quota for these keys.
    pub fn new(keys: Keys, quota: Quota) -> Self {
        Self { keys, quota }
    }
}

impl Keys {
    /// As the limiter names it: the key or the glob, or `regex:` and the regular expression.
    pub fn name(&self) -> String {
        match self {
            Self::Named(name) => name.clone(),
            Self::Matching(regex) => format!("regex:{regex}"),
        }
    }
}

impl PartialEq for ConfiguredQuota {
    fn eq(&self, other: &Self) -> bool {
        self.keys.name() == other.keys.name() && self.quota == other.quota
    }
}
