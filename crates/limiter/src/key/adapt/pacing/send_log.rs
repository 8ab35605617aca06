use std::collections::VecDeque;
use std::time::Duration;

use smallvec::SmallVec;

use crate::timestamp::Timestamp;

/// The charges sent in each column.
pub(super) type Sums = SmallVec<[f64; 4]>;

/// The circumstances in which a request was sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SentRequest {
    pub(super) at: Timestamp,
    /// Charges of requests sent before it, by column.
    pub(super) before: Sums,
    /// The number of the request, counted from 1.
    pub(super) number: u64,
    /// Requests in flight with it, itself included.
    pub(super) beside: u32,
    /// `true` if it was sent above a measured rate, to find out whether the limit is higher.
    pub(super) is_growing: bool,
}

/// The requests that may still be refused, in the order in which they were sent.
///
/// Requests of one nanosecond share an entry. If the log is full, neighbouring entries of its older half are
/// merged. Of the requests of an entry, the last ones are assumed to be the refused ones.
#[derive(Debug, Default)]
pub(super) struct SendLog {
    entries: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    first: SentRequest,
    /// The time of its last request.
    last_at: Timestamp,
    requests: u32,
    /// Requests whose answer has arrived, or that were returned.
    answered: u32,
    /// Those of them that used nothing of the limits.
    refused: u32,
    /// Requests that are no longer in flight.
    ended: u32,
}

impl SendLog {
    /// Adds the request that was sent last.
    pub(super) fn push(&mut self, sent: SentRequest) {
        match self.entries.back_mut() {
            // A clock that was set back without notice.
            Some(last) if last.first.at >= sent.at => {
                last.requests = last.requests.saturating_add(1)
            }
            _ => self.entries.push_back(Entry {
                last_at: sent.at,
                first: sent,
                requests: 1,
                answered: 0,
                refused: 0,
                ended: 0,
            }),
        }
        if self.entries.len() > MAX_ENTRIES {
            self.merge_older_half();
        }
    }

    /// Returns the circumstances of a request and marks it as answered; `None` if the log doesn't know it.
    /// `now` are the charges sent so far.
    pub(super) fn answer(
        &mut self,
        sent_at: Timestamp,
        is_refused: bool,
        now: &Sums,
    ) -> Option<SentRequest> {
        let index = self.index(sent_at)?;
        let next = self.until(sent_at, now)?.clone();
        let entry = &mut self.entries[index];
        let last = entry.requests - 1;
        let position = if is_refused {
            last.saturating_sub(entry.refused)
        } else {
            last.min(entry.answered - entry.refused)
        };
        entry.answered = entry.answered.saturating_add(1);
        entry.refused = entry.refused.saturating_add(u32::from(is_refused));
        let part = f64::from(position) / f64::from(entry.requests);
        let first = &entry.first;
        let between = |(column, next): (usize, &f64)| {
            let start = first.before.get(column).copied().unwrap_or_default();
            start + (next - start) * part
        };
        let sent = SentRequest {
            at: sent_at,
            before: next.iter().enumerate().map(between).collect(),
            number: first.number.saturating_add(u64::from(position)),
            beside: first.beside.saturating_add(position),
            is_growing: first.is_growing,
        };
        self.prune();
        Some(sent)
    }

    /// Returns the charges up to a request, by column; `None` if the log doesn't know it. `now` are the charges
    /// sent so far.
    pub(super) fn until<'a>(&'a self, sent_at: Timestamp, now: &'a Sums) -> Option<&'a Sums> {
        let index = self.index(sent_at)?;
        Some(self.entries.get(index + 1).map_or(now, |next| &next.first.before))
    }

    /// Marks a request as ended. Returns `true` if the log knows the request and no answer to it was seen.
    pub(super) fn end(&mut self, sent_at: Timestamp) -> bool {
        let Some(index) = self.index(sent_at) else { return false };
        let entry = &mut self.entries[index];
        entry.ended = entry.ended.saturating_add(1);
        let is_unanswered = entry.ended > entry.answered;
        self.prune();
        is_unanswered
    }

    /// Moves all times back by the amount by which the clock was set back.
    pub(super) fn rebase(&mut self, back: Duration) {
        for entry in &mut self.entries {
            entry.first.at = entry.first.at.saturating_sub(back);
            entry.last_at = entry.last_at.saturating_sub(back);
        }
    }

    /// Returns the index of the entry of a request.
    fn index(&self, sent_at: Timestamp) -> Option<usize> {
        let index = self.entries.partition_point(|entry| entry.last_at < sent_at);
        self.entries.get(index).filter(|entry| entry.first.at <= sent_at).map(|_| index)
    }

    fn prune(&mut self) {
        while self.entries.front().is_some_and(Entry::is_over) {
            self.entries.pop_front();
        }
    }

    fn merge_older_half(&mut self) {
        let newer = self.entries.split_off(MAX_ENTRIES / 2);
        let mut merged: VecDeque<Entry> = VecDeque::with_capacity(MAX_ENTRIES);
        for (position, entry) in self.entries.drain(..).enumerate() {
            match merged.back_mut() {
                Some(last) if position % 2 == 1 => last.absorb(&entry),
                _ => merged.push_back(entry),
            }
        }
        merged.extend(newer);
        self.entries = merged;
    }
}

impl Entry {
    fn is_over(&self) -> bool {
        self.answered.max(self.ended) >= self.requests
    }

    fn absorb(&mut self, next: &Self) {
        self.last_at = next.last_at;
        self.requests = self.requests.saturating_add(next.requests);
        self.answered = self.answered.saturating_add(next.answered);
        self.refused = self.refused.saturating_add(next.refused);
        self.ended = self.ended.saturating_add(next.ended);
    }
}

/// Some 100 KB at most. Up to this many requests in flight are known exactly.
const MAX_ENTRIES: usize = 1_024;
