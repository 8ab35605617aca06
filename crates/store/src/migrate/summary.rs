use std::fmt;

use serde::Serialize;

use super::file_kind::FileKind;
use super::missing::missing;
use crate::State;
use crate::go_ratelimit::ImportedState;

/// The result of a migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MigrateSummary {
    /// The kind of the source.
    pub from: FileKind,
    /// The kind of the destination.
    pub to: FileKind,
    /// The number of quotas in the source.
    pub quotas: usize,
    /// The names of the destination's quotas that were replaced.
    pub replaced_quotas: Vec<String>,
    /// The number of keys with usage in the source.
    pub keys: usize,
    /// The number of entries in the source; each is an amount of one key, dimension and window at one
    /// time.
    pub entries: usize,
    /// The number of keys with usage that the destination lacked.
    pub new_keys: usize,
    /// Entries that were skipped or adjusted.
    pub skipped: SkippedEntries,
    /// True if this was a dry run, in which nothing was written.
    pub dry_run: bool,
}

/// Entries of the source that were skipped or adjusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedEntries {
    /// Expired entries, skipped.
    pub past: u64,
    /// Entries with a negative amount, skipped.
    pub negative: u64,
    /// Entries dated in the future, which count from now on.
    pub ahead: u64,
}

impl MigrateSummary {
    pub(super) fn new(
        from: FileKind,
        to: FileKind,
        imported: &ImportedState,
        dry_run: bool,
    ) -> Self {
        let ImportedState { state, past, ahead, negative } = imported;
        let buckets = state.keys.iter().flat_map(|key| &key.buckets);
        Self {
            from,
            to,
            quotas: state.quotas.len(),
            replaced_quotas: Vec::new(),
            keys: state.keys.len(),
            entries: buckets.map(|bucket| bucket.saved.taken.len()).sum(),
            new_keys: 0,
            skipped: SkippedEntries { past: *past, negative: *negative, ahead: *ahead },
            dry_run,
        }
    }

    pub(super) fn compare(&mut self, source: &State, stored: &State) {
        self.new_keys = missing(source, stored).len();
        let is_replaced = |quota: &&paceline_limiter::limiter::NamedQuota| {
            source.quotas.iter().any(|other| other.name == quota.name && other != *quota)
        };
        self.replaced_quotas =
            stored.quotas.iter().filter(is_replaced).map(|quota| quota.name.clone()).collect();
    }
}

impl fmt::Display for MigrateSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.dry_run { " (dry run: nothing was written)" } else { "" };
        writeln!(f, "{} to {}{note}", self.from, self.to)?;
        let (quotas, keys, entries) = (self.quotas, self.keys, self.entries);
        write!(
            f,
            "{quotas} quotas, {keys} keys ({} with new usage), {entries} entries",
            self.new_keys
        )?;
        if !self.replaced_quotas.is_empty() {
            write!(f, "\nreplaced quotas: {}", self.replaced_quotas.join(", "))?;
        }
        write!(f, "{}", self.skipped)
    }
}

impl fmt::Display for SkippedEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { past, negative, ahead } = self;
        if *past > 0 {
            write!(f, "\nskipped: {past} expired entries")?;
        }
        if *negative > 0 {
            write!(f, "\nskipped: {negative} entries with a negative amount")?;
        }
        if *ahead > 0 {
            write!(f, "\nadjusted: {ahead} entries dated in the future count from now on")?;
        }
        Ok(())
    }
}
