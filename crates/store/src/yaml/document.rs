use std::collections::BTreeMap;
use std::path::Path;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{KeyChanges, NamedQuota};
use serde::{Deserialize, Serialize};

use super::boot_time::BootTime;
use super::key_usage::KeyUsage;
use super::nesting::{MAX_DEPTH, is_too_deep};
use super::stored_quota::StoredQuota;
use super::text::Time;
use crate::clock_origin::ClockOrigin;
use crate::{State, StoreError};

/// The content of a state file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    version: u64,
    /// The time of the last write.
    #[serde(default)]
    written_at: Time,
    /// The machine's boot, by the clock of the writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<BootTime>,
    #[serde(default)]
    quotas: BTreeMap<String, StoredQuota>,
    #[serde(default)]
    keys: BTreeMap<String, KeyUsage>,
}

impl Document {
    /// Parses the text of a file; an empty text is an empty state.
    pub(super) fn read(path: &Path, text: &str) -> Result<Self, StoreError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        check(path, text)?;
        let mut document: Self =
            serde_yaml::from_str(text).map_err(|error| invalid(path, &error.to_string()))?;
        document.keys.values_mut().for_each(KeyUsage::sort);
        Ok(document)
    }

    /// Returns the text of the file.
    pub(super) fn to_text(&self) -> Result<String, serde_yaml::Error> {
        Ok(format!("{TITLE}{}{END}\n", serde_yaml::to_string(self)?))
    }

    /// Converts times from the clock of the writer to the clock of `origin`, which shows `now`, and
    /// deletes expired usage.
    pub(super) fn retime(&mut self, origin: &ClockOrigin, now: Timestamp) {
        let then = self.boot.as_ref().map(BootTime::origin).unwrap_or_default();
        self.convert_times(&then, origin, now);
    }

    /// Converts times from the clock of `then` to the clock of `origin`, which shows `now`, and deletes
    /// expired usage.
    pub(super) fn convert_times(
        &mut self,
        then: &ClockOrigin,
        origin: &ClockOrigin,
        now: Timestamp,
    ) {
        self.keys.values_mut().for_each(|key| key.retime(then, origin, now));
        self.prune(now);
    }

    /// Applies changes.
    pub(super) fn merge(
        &mut self,
        changes: &[KeyChanges],
        quotas: Option<&[NamedQuota]>,
        now: Timestamp,
    ) {
        for change in changes {
            self.keys.entry(change.key.to_string()).or_default().merge(change, now);
        }
        if let Some(quotas) = quotas {
            self.quotas = stored_quotas(quotas);
        }
        self.prune(now);
    }

    /// Converts held amounts to usage at `now`.
    pub(super) fn charge_held(&mut self, now: Timestamp) {
        self.keys.values_mut().for_each(|key| key.charge_held(now));
        self.prune(now);
    }

    /// Resets the usage of a key, or of all keys.
    pub(super) fn reset(&mut self, only: Option<&str>) {
        self.keys.retain(|key, _| only.is_some_and(|only| only != key));
    }

    /// Sets the time of the write, by the clock of `origin`.
    pub(super) fn set_written(&mut self, origin: &ClockOrigin, now: Timestamp) {
        self.written_at = Time(now);
        self.boot = BootTime::of(origin);
    }

    pub(super) fn state(&self) -> State {
        let quotas = self.quotas.iter().map(|(name, quota)| quota.named(name)).collect();
        let keys = self.keys.iter().map(|(key, used)| used.snapshot(key)).collect();
        State { quotas, keys }
    }

    pub(super) fn from_state(state: &State, now: Timestamp) -> Self {
        let mut keys: BTreeMap<String, KeyUsage> = state
            .keys
            .iter()
            .map(|key| (key.key.clone(), KeyUsage::from_snapshot(key, now)))
            .collect();
        keys.retain(|_, key| !key.is_empty());
        Self { quotas: stored_quotas(&state.quotas), keys, ..Self::default() }
    }

    fn prune(&mut self, now: Timestamp) {
        self.keys.values_mut().for_each(|key| key.prune(now));
        self.keys.retain(|_, key| !key.is_empty());
    }
}

impl Default for Document {
    fn default() -> Self {
        let (quotas, keys) = (BTreeMap::new(), BTreeMap::new());
        Self { version: VERSION, written_at: Time::default(), boot: None, quotas, keys }
    }
}

/// The fields that identify the program and version of a file.
#[derive(Deserialize)]
struct Head {
    version: Option<u64>,
    quotas: Option<serde_yaml::Value>,
    state: Option<serde_yaml::Value>,
}

/// Checks that a text is a complete paceline file of this version.
fn check(path: &Path, text: &str) -> Result<(), StoreError> {
    if is_too_deep(text) {
        return Err(invalid(path, &format!("nested more than {MAX_DEPTH} levels deep")));
    }
    let head: Head =
        serde_yaml::from_str(text).map_err(|error| invalid(path, &not_a_state(&error)))?;
    match head.version {
        Some(VERSION) => {}
        Some(version) => {
            let reason = format!(
                "unsupported version {version}; this paceline reads version {VERSION}: use the \
                 release that wrote the file"
            );
            return Err(StoreError::new(path, reason));
        }
        None if head.quotas.is_some() || head.state.is_some() => {
            return Err(StoreError::new(path, MAYBE_GO));
        }
        None => return Err(invalid(path, "not a paceline state file: it has no `version`")),
    }
    let text = text.trim_end();
    if text.lines().next_back() == Some(END) {
        return Ok(());
    }
    let line = text.lines().count();
    Err(invalid(path, &format!("truncated: it ends at line {line} without `{END}`")))
}

/// Formats an error without the content, since a file of another program may contain secrets.
fn not_a_state(error: &serde_yaml::Error) -> String {
    let position =
        |at: serde_yaml::Location| format!(" (line {}, column {})", at.line(), at.column());
    format!("not a paceline state file{}", error.location().map(position).unwrap_or_default())
}

fn invalid(path: &Path, reason: &str) -> StoreError {
    StoreError::new(path, format!("{reason}; {UNCHANGED}"))
}

fn stored_quotas(quotas: &[NamedQuota]) -> BTreeMap<String, StoredQuota> {
    quotas.iter().map(|quota| (quota.name.clone(), StoredQuota::from(quota))).collect()
}

const VERSION: u64 = 1;
const TITLE: &str = "# State of paceline, which overwrites this file; see `paceline::store::Yaml` for its format.\n";
/// The YAML end-of-document marker; a file without it is truncated.
const END: &str = "...";
const UNCHANGED: &str = "the file was left unchanged: fix it, or move it aside to start fresh";
const MAYBE_GO: &str = "it has no `version`; if go-ratelimit wrote it, import it with `paceline \
                        migrate`, which leaves it unchanged";
