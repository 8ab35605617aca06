use alloc::collections::VecDeque;

use super::Wait;
use crate::timestamp::Timestamp;

/// At most `limit` in any `span` of nanoseconds (the window and its margin).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) limit: u64,
    pub(super) span: u64,
}

/// The log of requests: exact while it is short, then one entry per sub-window, which has the time of its
/// last request and expires one span after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
    total: u128,
    held: u64,
    /// The amounts that have left the window, of about one span before the last of them, at its time. A longer
    /// window counts them.
    expired: Entry,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    pub(super) amount: u64,
}

impl Log {
    pub(super) fn check(&self, spec: &Spec, cost: u64, now: Timestamp) -> Result<(), Wait> {
        if cost > spec.limit {
            return Err(Wait::Never);
        }
        let unused = u128::from(spec.limit - cost);
        let Some(unused) = unused.checked_sub(u128::from(self.held)) else {
            return Err(Wait::Unknown);
        };
        let mut used = self.total;
        let mut expiries = self.entries.iter();
        let mut until = Timestamp::UNIX_EPOCH;
        while used > unused {
            let Some(entry) = expiries.next() else { break };
            used -= u128::from(entry.amount);
            until = entry.at.add_nanos(spec.span);
        }
        if until <= now { Ok(()) } else { Err(Wait::At(until)) }
    }

    pub(super) fn take(&mut self, spec: &Spec, amount: u64, now: Timestamp) {
        let now = self.entries.back().map_or(now, |last| last.at.max(now));
        self.expire(spec, now);
        let exact = self.entries.len() < EXACT_ENTRIES;
        let width = (spec.span / SUB_WINDOWS).max(1);
        if let Some(last) = self.entries.back_mut()
            && (last.at == now || (!exact && last.at.as_nanos() / width == now.as_nanos() / width))
        {
            let sum = last.amount.saturating_add(amount);
            self.total += u128::from(sum - last.amount);
            *last = Entry { at: now, amount: sum };
            return;
        }
        self.total += u128::from(amount);
        self.entries.push_back(Entry { at: now, amount });
    }

    /// Takes an amount that was used in equal parts over the span until now.
    pub(super) fn take_past(&mut self, spec: &Spec, amount: u64, now: Timestamp) {
        self.expire(spec, now);
        let parts = amount.clamp(1, PAST_PARTS);
        for part in (0..parts).rev() {
            let share = amount / parts + u64::from(part < amount % parts);
            let at = now.sub_nanos(spec.span / parts * part);
            let is_long = self.entries.len() >= EXACT_ENTRIES;
            let index = self.entries.partition_point(|entry| entry.at < at);
            match self.entries.get_mut(index) {
                Some(later) if is_long || later.at == at => {
                    later.amount = later.amount.saturating_add(share);
                }
                _ => self.entries.insert(index, Entry { at, amount: share }),
            }
            self.total += u128::from(share);
        }
    }

    /// Corrects the entry of a request that was sent at `sent`, while it is in the window.
    pub(super) fn correct(
        &mut self,
        spec: &Spec,
        sent: Timestamp,
        taken: u64,
        actual: u64,
        now: Timestamp,
    ) {
        if sent.add_nanos(spec.span) <= now {
            return; // The next entry belongs to another request.
        }
        let index = self.entries.partition_point(|e| e.at < sent);
        let Some(entry) = self.entries.get_mut(index) else {
            // Nothing was taken for the request, so it has no entry.
            return self.take(spec, actual.saturating_sub(taken), sent);
        };
        let amount = entry.amount.saturating_sub(taken).saturating_add(actual);
        self.total = self.total - u128::from(entry.amount) + u128::from(amount);
        entry.amount = amount;
    }

    /// Returns all usage that the log knows of, also that which has left the window, oldest first.
    pub(super) fn known(&self) -> impl Iterator<Item = Entry> {
        let expired = Some(self.expired).filter(|expired| expired.amount > 0);
        expired.into_iter().chain(self.entries.iter().copied())
    }

    pub(super) fn hold(&mut self, amount: u64) {
        self.held = self.held.saturating_add(amount);
    }

    pub(super) fn drop_hold(&mut self, amount: u64) {
        self.held = self.held.saturating_sub(amount);
    }

    pub(super) fn held(&self) -> u64 {
        self.held
    }

    pub(super) fn used(&self, spec: &Spec, now: Timestamp) -> u64 {
        let used: u128 = self.live(spec, now).map(|e| u128::from(e.amount)).sum();
        u64::try_from(used).unwrap_or(u64::MAX)
    }

    /// Returns the time at which the window is empty, if no further request is sent.
    pub(super) fn empty_at(&self, spec: &Spec) -> Timestamp {
        let last = self.entries.iter().rev().find(|e| e.amount > 0);
        last.map_or(Timestamp::UNIX_EPOCH, |e| e.at.add_nanos(spec.span))
    }

    pub(super) fn live(&self, spec: &Spec, now: Timestamp) -> impl Iterator<Item = Entry> {
        let span = spec.span;
        self.entries.iter().copied().filter(move |e| e.at.add_nanos(span) > now)
    }

    pub(super) fn rebase(&mut self, back: u64) {
        for entry in self.entries.iter_mut().chain([&mut self.expired]) {
            entry.at = entry.at.sub_nanos(back);
        }
    }

    fn expire(&mut self, spec: &Spec, now: Timestamp) {
        while let Some(entry) = self.entries.front().copied() {
            if entry.at.add_nanos(spec.span) > now {
                break;
            }
            self.total -= u128::from(entry.amount);
            self.entries.pop_front();
            let before = self.expired;
            let is_near = before.at.add_nanos(spec.span) > entry.at;
            let sum = entry.amount.saturating_add(if is_near { before.amount } else { 0 });
            let amount = sum.min(spec.limit.max(entry.amount));
            self.expired = Entry { at: entry.at, amount };
        }
    }
}

/// The maximum length of an exact log, and the number of sub-windows after that: at most 384 entries of 16
/// bytes, and a delay of at most 1/256 of the span.
const EXACT_ENTRIES: usize = 128;
const SUB_WINDOWS: u64 = 256;

/// The number of parts of usage whose times are unknown.
const PAST_PARTS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_usage_expires_evenly() {
        let spec = Spec { limit: 1_000, span: 60_000_000_000 };
        let (mut log, begin) = (Log::default(), Timestamp::from_nanos(100_000_000_000));
        log.take(&spec, 10, begin);
        log.take_past(&spec, 640, begin);
        assert_eq!(log.used(&spec, begin), 650);
        let half = begin.add_nanos(30_000_000_000);
        assert_eq!(log.used(&spec, half), 330);
        assert!(log.check(&spec, 670, half).is_ok() && log.check(&spec, 671, half).is_err());
        assert_eq!(log.used(&spec, begin.add_nanos(60_000_000_000)), 0);
        // In order, however often it is repeated.
        (0..100).for_each(|_| log.take_past(&spec, 64, half));
        assert!(log.entries.iter().zip(log.entries.iter().skip(1)).all(|(a, b)| a.at < b.at));
        assert!(log.entries.len() <= EXACT_ENTRIES + 1);
    }

    #[test]
    fn long_log_is_bounded_and_expires_late() {
        let spec = Spec { limit: 1_000_000, span: 60_000_000_000 };
        let mut log = Log::default();
        for i in 0..100_000_u64 {
            log.take(&spec, 1, Timestamp::from_nanos(i * 600_000));
            assert!(log.entries.len() <= EXACT_ENTRIES + SUB_WINDOWS as usize + 2);
        }
        let end = Timestamp::from_nanos(99_999 * 600_000);
        assert_eq!(log.used(&spec, end), 100_000);
        assert_eq!(
            log.used(&spec, end.add_nanos(spec.span - 1)),
            log.entries.back().unwrap().amount
        );
        assert_eq!(log.used(&spec, end.add_nanos(spec.span)), 0);
    }
}
