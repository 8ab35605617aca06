use std::collections::BTreeMap;
use std::path::Path;

use paceline_limiter::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::imported::{ImportedState, ModelLimits, ModelUsage};
use crate::StoreError;
use crate::yaml::is_too_deep;

/// Returns whether a text is a go-ratelimit file, based on its sections.
pub(crate) fn is_file(text: &str) -> bool {
    if is_too_deep(text) {
        return false;
    }
    let ours: Result<Sections, _> = serde_yaml::from_str(text);
    ours.is_ok_and(|ours| ours.version.is_none() && (ours.quotas.is_some() || ours.state.is_some()))
}

/// Reads the text of the file at `path`, at time `now`.
pub(crate) fn read_file(
    path: &Path,
    text: &str,
    now: Timestamp,
) -> Result<ImportedState, StoreError> {
    let file: File =
        serde_yaml::from_str(text).map_err(|error| StoreError::new(path, error.to_string()))?;
    let quotas = file.quotas.unwrap_or_default().into_iter();
    let limits = quotas.map(|(name, quota)| (name, quota.unwrap_or_default().limits()));
    let state = file.state.unwrap_or_default().into_iter();
    let models = state.map(|(name, stats)| (name, stats.unwrap_or_default().model()));
    Ok(ImportedState::new(limits.collect(), models.collect(), now))
}

/// A file with other sections is not go-ratelimit's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    version: Option<serde_yaml::Value>,
    quotas: Option<serde_yaml::Mapping>,
    state: Option<serde_yaml::Mapping>,
}

/// Go writes empty values as `null`, `[]` or `{}`.
#[derive(Deserialize)]
struct File {
    quotas: Option<BTreeMap<String, Option<ModelQuota>>>,
    state: Option<BTreeMap<String, Option<UsageStats>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ModelQuota {
    max_rpm: Limit,
    max_tpm: Limit,
    max_rpd: Limit,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UsageStats {
    requests: Option<Vec<Time>>,
    tokens: Option<Vec<TokenEntry>>,
    #[serde(alias = "daystart")]
    day_start: Option<Time>,
    #[serde(alias = "daycount")]
    day_count: i64,
}

#[derive(Deserialize)]
struct TokenEntry {
    time: Time,
    #[serde(default)]
    count: i64,
}

/// A non-negative number.
#[derive(Clone, Copy, Default)]
struct Limit(u64);

/// Nanoseconds since the Unix epoch.
#[derive(Clone, Copy)]
struct Time(i128);

impl ModelQuota {
    fn limits(&self) -> ModelLimits {
        ModelLimits { rpm: self.max_rpm.0, tpm: self.max_tpm.0, rpd: self.max_rpd.0 }
    }
}

impl UsageStats {
    fn model(self) -> ModelUsage {
        let tokens = self.tokens.unwrap_or_default().into_iter();
        ModelUsage {
            requests: self.requests.unwrap_or_default().into_iter().map(|time| time.0).collect(),
            tokens: tokens.map(|entry| (entry.time.0, entry.count)).collect(),
            day: self.day_start.map(|start| (start.0, self.day_count)),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let limit = u64::try_from(number);
        limit.map(Self).map_err(|_| {
            D::Error::custom(format!(
                "negative limit {number}; use a positive number, or 0 for unlimited"
            ))
        })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = text.parse::<jiff::Timestamp>();
        time.map(|time| Self(time.as_nanosecond())).map_err(|_| {
            D::Error::custom(format!(
                "invalid time `{text}`; expected RFC 3339, such as 2026-02-20T14:32:01.123456789Z"
            ))
        })
    }
}
