use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::batch::ids::{Id, Ids};
use crate::batch::input::ParsedLine;
use crate::batch::request_hash::RequestHash;

/// The requests finished by earlier runs.
#[derive(Debug, Default)]
pub struct FinishedRequests {
    results: HashMap<Id, FinishedRequest, FixedState>,
    succeeded: u64,
    failed: u64,
    without_hash: u64,
    pub(super) again: u64,
    pub(super) torn: bool,
}

/// A result of an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FinishedRequest {
    /// The hash of the request; `None` if the line has no hash.
    pub(super) hash: Option<RequestHash>,
    /// True for a permanent failure.
    pub(super) failed: bool,
}

/// The state of an input line after earlier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineStatus {
    /// Not finished.
    Open,
    /// Succeeded.
    Succeeded,
    /// Failed permanently.
    Failed,
    /// Another request with its `custom_id` is finished.
    Changed,
}

impl FinishedRequests {
    /// Returns true if a request with this `custom_id` succeeded or failed permanently.
    pub fn contains(&self, custom_id: &str) -> bool {
        self.results.contains_key(&Id::of(custom_id))
    }

    /// Returns the state of a line. A result without a hash matches any line with its `custom_id`.
    pub fn status(&self, parsed: &ParsedLine) -> LineStatus {
        let (custom_id, line) = match parsed {
            ParsedLine::Request(line) => (&line.custom_id, Some(line)),
            ParsedLine::Invalid(bad) => (&bad.custom_id, None),
        };
        match self.results.get(&Id::of(custom_id)) {
            None => LineStatus::Open,
            Some(FinishedRequest { hash: Some(hash), .. })
                if line.is_none_or(|line| line.hash != *hash) =>
            {
                LineStatus::Changed
            }
            Some(FinishedRequest { failed: true, .. }) => LineStatus::Failed,
            Some(_) => LineStatus::Succeeded,
        }
    }

    /// Returns true if no request is finished.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Returns the number of successful requests.
    pub fn succeeded(&self) -> u64 {
        self.succeeded
    }

    /// Returns the number of permanently failed requests.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Returns the number of results without a hash, written by an earlier version or another
    /// program.
    pub fn without_hash(&self) -> u64 {
        self.without_hash
    }

    /// Returns the number of removed lines, whose requests are sent again.
    pub fn again(&self) -> u64 {
        self.again
    }

    /// Returns true if an incomplete last line was removed.
    pub fn was_torn(&self) -> bool {
        self.torn
    }

    /// Returns the allocated memory in bytes.
    pub fn memory(&self) -> usize {
        self.results.allocation_size()
    }

    pub(super) fn insert(&mut self, id: Id, finished: FinishedRequest) {
        self.count(finished, |count| *count += 1);
        // Duplicates (of concatenated outputs) count once.
        self.results.entry(id).or_insert(finished);
    }

    /// Removes requests that are sent again.
    pub(super) fn forget(&mut self, ids: &Ids) {
        let removed: Vec<_> = self
            .results
            .extract_if(|id, _| ids.contains(*id))
            .map(|(_, finished)| finished)
            .collect();
        for finished in removed {
            self.count(finished, |count| *count -= 1);
            self.again += 1;
        }
    }

    fn count(&mut self, finished: FinishedRequest, change: impl Fn(&mut u64)) {
        change(if finished.failed { &mut self.failed } else { &mut self.succeeded });
        if finished.hash.is_none() {
            change(&mut self.without_hash);
        }
    }
}
