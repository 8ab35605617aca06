use std::fmt;

use serde::Serialize;

use super::file_kind::FileKind;
use super::missing::missing;
use crate::store::State;
use crate::store::go_ratelimit::ImportedState;

/// What was taken over, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MigrateSummary {
    /// What the source is.
    pub from: FileKind,
    /// What the destination is.
    pub to: FileKind,
    /// Quotas of the source.
    pub quotas: usize,
    /// Quotas of the destination that gave way to others of their name.
    pub replaced_quotas: Vec<String>,
    /// Keys of the source that have used something.
    pub keys: usize,
    /// Entries of the source: what was taken of a key's dimension and window at one time.
    pub entries: usize,
    /// Keys of which the destination didn't know all of that.
    pub new_keys: usize,
    /// What was not taken over as it stood.
    pub skipped: SkippedEntries,
    /// Nothing was written.
    pub dry_run: bool,
}

/// Entries of a source that were not taken over as they stood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedEntries {
    /// Left out, since they no longer count.
    pub past: u64,
    /// Left out, since they are of less than nothing.
    pub negative: u64,
    /// Taken over as of now, since their time was yet to come.
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
        let is_replaced = |quota: &&crate::limiter::NamedQuota| {
            source.quotas.iter().any(|other| other.name == quota.name && other != *quota)
        };
        self.replaced_quotas =
            stored.quotas.iter().filter(is_replaced).map(|quota| quota.name.clone()).collect();
    }
}

impl fmt::Display for MigrateSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let would = if self.dry_run { " (dry run: nothing was written)" } else { "" };
        writeln!(f, "{} to {}{would}", self.from, self.to)?;
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
