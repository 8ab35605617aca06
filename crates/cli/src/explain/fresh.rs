use std::collections::HashMap;

use compact_str::CompactString;

use super::Explanation;
use tollgate::Timestamp;
use tollgate::quota::Window;

/// Tells which exchanges found their bucket full: only then `limit - remaining` is what the
/// provider charged for them.
///
/// The first one of a model does, and one a minute after the one before (a bucket that refills all
/// the time is full after its window). One without a time counts as a recording of its own. Traffic
/// that was not recorded is not known of: the median bears some of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Fresh(HashMap<(&'static str, Option<CompactString>), Timestamp>);

impl Fresh {
    pub(super) fn admits(&mut self, explanation: &Explanation) -> bool {
        let Some(now) = explanation.ended_at else { return true };
        let key = (explanation.profile.name(), explanation.estimate.model.clone());
        if self.0.len() >= MOST_MODELS && !self.0.contains_key(&key) {
            return false;
        }
        let before = self.0.insert(key, now);
        before.is_none_or(|before| now.abs_diff(before) >= Window::MINUTE.as_duration())
    }
}

/// Models beyond this many are not compared: whatever a file holds, this stays small.
const MOST_MODELS: usize = 10_000;
