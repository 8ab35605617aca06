use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::batch::ids::{Id, Ids};
use crate::batch::input::Entry;
use crate::batch::request_hash::RequestHash;

/// What earlier runs finished.
#[derive(Debug, Default)]
pub struct Done {
    results: HashMap<Id, Finished, FixedState>,
    succeeded: u64,
    failed: u64,
    without_hash: u64,
    pub(super) again: u64,
    pub(super) torn: bool,
}

/// A result of an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finished {
    /// The request that it is the result of; `None` where its line doesn't say.
    pub(super) hash: Option<RequestHash>,
    /// Whether it is a failure for good.
    pub(super) failed: bool,
}

/// The state of a line of the input after earlier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineStatus {
    /// No run has finished it.
    Open,
    /// It was answered.
    Succeeded,
    /// It failed for good.
    Failed,
    /// Another request was finished under its `custom_id`.
    Changed,
}

impl Done {
    /// Whether an earlier run finished a request of this `custom_id`, be it by a failure for good.
    pub fn contains(&self, custom_id: &str) -> bool {
        self.results.contains_key(&Id::of(custom_id))
    }

    /// The state of a line. A result without a hash is taken for that of the line.
    pub fn status(&self, entry: &Entry) -> LineStatus {
        let (custom_id, line) = match entry {
            Entry::Request(line) => (&line.custom_id, Some(line)),
            Entry::Bad(bad) => (&bad.custom_id, None),
        };
        match self.results.get(&Id::of(custom_id)) {
            None => LineStatus::Open,
            Some(Finished { hash: Some(hash), .. })
                if line.is_none_or(|line| line.hash != *hash) =>
            {
                LineStatus::Changed
            }
            Some(Finished { failed: true, .. }) => LineStatus::Failed,
            Some(_) => LineStatus::Succeeded,
        }
    }

    /// Whether no request is finished.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// How many requests succeeded.
    pub fn succeeded(&self) -> u64 {
        self.succeeded
    }

    /// How many failed for good.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// How many results don't say which request they answer: an earlier version wrote them, or
    /// another program.
    pub fn without_hash(&self) -> u64 {
        self.without_hash
    }

    /// How many lines made room: what they stand for is done again.
    pub fn again(&self) -> u64 {
        self.again
    }

    /// Whether a torn last line was cut off.
    pub fn was_torn(&self) -> bool {
        self.torn
    }

    /// The memory in use, in bytes.
    pub fn memory(&self) -> usize {
        self.results.allocation_size()
    }

    pub(super) fn insert(&mut self, id: Id, finished: Finished) {
        self.count(finished, |count| *count += 1);
        // In the file twice (someone joined two outputs) is as finished as once.
        self.results.entry(id).or_insert(finished);
    }

    /// Forgets requests that are to be done again.
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

    fn count(&mut self, finished: Finished, change: impl Fn(&mut u64)) {
        change(if finished.failed { &mut self.failed } else { &mut self.succeeded });
        if finished.hash.is_none() {
            change(&mut self.without_hash);
        }
    }
}
