use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::quota::Written;
use super::start::Start;
use super::text::Time;
use crate::limiter::{KeyChanges, NamedQuota};
use crate::store::times::Origin;
use crate::store::{State, StoreError};

/// All that a file of state holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    version: u64,
    /// When it was written.
    #[serde(default)]
    written_at: Time,
    /// The machine's last start, by the clock of who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<Start>,
    #[serde(default)]
    quotas: BTreeMap<String, Written>,
    #[serde(default)]
    keys: BTreeMap<String, Key>,
}

impl Document {
    /// Reads a file's text; one without any is a state of nothing.
    pub(super) fn read(path: &Path, text: &str) -> Result<Self, StoreError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        check(path, text)?;
        let mut document: Self =
            serde_yaml::from_str(text).map_err(|error| wrong(path, &error.to_string()))?;
        document.keys.values_mut().for_each(Key::sort);
        Ok(document)
    }

    /// The text of a file that holds it.
    pub(super) fn print(&self) -> Result<String, serde_yaml::Error> {
        Ok(format!("{TITLE}{}{END}\n", serde_yaml::to_string(self)?))
    }

    /// Sets its times right for the clock of `origin`, which says `now`, and forgets what no longer
    /// counts by it.
    pub(super) fn retime(&mut self, origin: &Origin, now: u64) {
        let then = self.boot.as_ref().map(Start::origin).unwrap_or_default();
        self.move_on((&then, origin), now);
    }

    /// The same for times that one clock has told, by what is another by now.
    pub(super) fn move_on(&mut self, (then, origin): (&Origin, &Origin), now: u64) {
        self.keys.values_mut().for_each(|key| key.retime(then, origin, now));
        self.prune(now);
    }

    /// Takes changes on top.
    pub(super) fn merge(
        &mut self,
        changes: &[KeyChanges],
        quotas: Option<&[NamedQuota]>,
        now: u64,
    ) {
        for change in changes {
            self.keys.entry(change.key.to_string()).or_default().merge(change, now);
        }
        if let Some(quotas) = quotas {
            self.quotas = written(quotas);
        }
        self.prune(now);
    }

    /// What is in flight counts as taken at `now`.
    pub(super) fn leave(&mut self, now: u64) {
        self.keys.values_mut().for_each(|key| key.leave(now));
        self.prune(now);
    }

    /// Forgets what was used of a key, or of all.
    pub(super) fn forget(&mut self, only: Option<&str>) {
        self.keys.retain(|key, _| only.is_some_and(|only| only != key));
    }

    /// Says that it is written at `now`, by the clock of `origin`.
    pub(super) fn sign(&mut self, origin: &Origin, now: u64) {
        self.written_at = Time(now);
        self.boot = Start::of(origin);
    }

    pub(super) fn state(&self) -> State {
        let quotas = self.quotas.iter().map(|(name, quota)| quota.named(name)).collect();
        let keys = self.keys.iter().map(|(key, used)| used.snapshot(key)).collect();
        State { quotas, keys }
    }

    pub(super) fn of(state: &State, now: u64) -> Self {
        let mut keys: BTreeMap<String, Key> =
            state.keys.iter().map(|key| (key.key.clone(), Key::of(key, now))).collect();
        keys.retain(|_, key| !key.is_empty());
        Self { quotas: written(&state.quotas), keys, ..Self::default() }
    }

    fn prune(&mut self, now: u64) {
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

/// What tells whose file it is.
#[derive(Deserialize)]
struct Head {
    version: Option<u64>,
    quotas: Option<serde_yaml::Value>,
    state: Option<serde_yaml::Value>,
}

/// Whether a text is a whole file of ours, of this version.
fn check(path: &Path, text: &str) -> Result<(), StoreError> {
    let head: Head = serde_yaml::from_str(text).map_err(|error| wrong(path, &foreign(&error)))?;
    match head.version {
        Some(VERSION) => {}
        Some(version) => {
            let reason = format!(
                "unsupported version {version}; this tollgate reads version {VERSION}: use the \
                 release that wrote the file"
            );
            return Err(StoreError::new(path, reason));
        }
        None if head.quotas.is_some() || head.state.is_some() => {
            return Err(StoreError::new(path, MAYBE_GO));
        }
        None => return Err(wrong(path, "not a tollgate state file: it has no `version`")),
    }
    let text = text.trim_end();
    if text.lines().next_back() == Some(END) {
        return Ok(());
    }
    let line = text.lines().count();
    Err(wrong(path, &format!("truncated: it ends at line {line} without `{END}`")))
}

/// Without what stands there: a file of another program may be full of secrets.
fn foreign(error: &serde_yaml::Error) -> String {
    let place = |at: serde_yaml::Location| format!(" (line {}, column {})", at.line(), at.column());
    format!("not a tollgate state file{}", error.location().map(place).unwrap_or_default())
}

fn wrong(path: &Path, reason: &str) -> StoreError {
    StoreError::new(path, format!("{reason}; {LEFT}"))
}

fn written(quotas: &[NamedQuota]) -> BTreeMap<String, Written> {
    quotas.iter().map(|quota| (quota.name.clone(), Written::from(quota))).collect()
}

const VERSION: u64 = 1;
const TITLE: &str = "# State of tollgate, which overwrites this file; see `tollgate::store::Yaml` for its format.\n";
/// The end of a document, in YAML; a file that lacks it isn't whole.
const END: &str = "...";
const LEFT: &str = "the file was left unchanged: fix it, or move it aside to start fresh";
const MAYBE_GO: &str = "it has no `version`; if go-ratelimit wrote it, import it with `tollgate \
                        migrate`, which leaves it unchanged";
