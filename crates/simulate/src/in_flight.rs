//! The limit on requests in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::exceeded_limit::{ExceededLimit, LimitKind};

/// The requests in flight of one model, each until the end of its latency.
#[derive(Debug)]
pub(super) struct InFlight {
    limit: u64,
    /// The ends of responses, earliest first.
    ends: BinaryHeap<Reverse<u64>>,
}

impl InFlight {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, ends: BinaryHeap::new() }
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Returns the refusal of one more request, if there are too many.
    pub(super) fn refusal(&mut self, now: u64, model: &str) -> Option<ExceededLimit> {
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            self.ends.pop();
        }
        let used = u64::try_from(self.ends.len()).unwrap_or(u64::MAX);
        let surplus = usize::try_from(used.checked_sub(self.limit)?).unwrap_or(usize::MAX);
        let mut ends: Vec<u64> = self.ends.iter().map(|Reverse(end)| *end).collect();
        ends.sort_unstable();
        Some(ExceededLimit {
            model: model.to_owned(),
            kind: LimitKind::Concurrency,
            limit: self.limit,
            used,
            requested: 1,
            retry_after: ends.get(surplus).map(|end| Duration::from_nanos(end - now)),
        })
    }

    /// Adds a request for `duration`.
    pub(super) fn start(&mut self, now: u64, duration: Duration) {
        let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.ends.push(Reverse(now.saturating_add(duration)));
    }
}
