use std::collections::HashMap;

use paceline::Key;

use super::Explanation;
use paceline::Timestamp;
use paceline::quota::Window;

/// Detects exchanges with a full bucket, for which `limit - remaining` is the charge.
///
/// The bucket is full for the first exchange of a model, and for one that comes a minute after the
/// previous one. An exchange without a time counts as a separate recording. Unrecorded traffic is
/// unknown and affects the median.
#[derive(Debug, Clone, Default)]
pub(super) struct FullBuckets(HashMap<(&'static str, Option<Key>), Timestamp>);

impl FullBuckets {
    pub(super) fn is_full_for(&mut self, explanation: &Explanation) -> bool {
        let Some(now) = explanation.ended_at else { return true };
        let key = (explanation.profile.name(), explanation.estimate.model.clone());
        if self.0.len() >= MOST_MODELS && !self.0.contains_key(&key) {
            return false;
        }
        let before = self.0.insert(key, now);
        before.is_none_or(|before| now.abs_diff(before) >= Window::MINUTE.as_duration())
    }
}

/// The maximum number of models compared, which bounds the memory.
const MOST_MODELS: usize = 10_000;
