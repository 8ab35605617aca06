use paceline_limiter::quota::Quota;

/// A quota of the configuration and its keys.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConfiguredQuota {
    /// The keys.
    pub keys: Keys,
    /// The limits of each key.
    pub quota: Quota,
}

/// The keys of a quota.
#[derive(Debug, Clone)]
pub enum Keys {
    /// One key, or all keys that a glob matches.
    Named(String),
    /// All keys that a regular expression matches in full.
    Matching(String),
}

impl ConfiguredQuota {
    /// Creates a quota for these keys.
    pub fn new(keys: Keys, quota: Quota) -> Self {
        Self { keys, quota }
    }
}

impl Keys {
    /// Returns the name in the limiter: the key or the glob, or `regex:` and the regular expression.
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
