use core::ops::Range;

use super::Window;
use crate::timestamp::Timestamp;

/// Consecutive windows that cover all time, computed from a clock or a calendar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grid {
    /// In chronological order. Each run ends at the start of the next. The time from the epoch to the first
    /// run is one window.
    runs: Vec<Run>,
}

/// Consecutive windows of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    start: Timestamp,
    length: u64,
}

impl Grid {
    /// Creates windows of one length that start at its multiples.
    pub(crate) fn every(window: Window) -> Self {
        Self { runs: vec![Run { start: Timestamp::UNIX_EPOCH, length: window.as_nanos() }] }
    }

    /// Creates one window that covers all time.
    pub(crate) fn endless() -> Self {
        Self::every(Window::ENDLESS)
    }

    /// Returns `true` for one window that covers all time.
    pub(crate) fn is_endless(&self) -> bool {
        self.shortest() == Window::ENDLESS.as_nanos()
    }

    /// Appends windows of this length from `start`, which must be later than all before. A length of 0 is
    /// ignored.
    pub(super) fn push(&mut self, start: Timestamp, length: u64) {
        if length > 0 && self.runs.last().is_none_or(|last| last.length != length) {
            self.runs.push(Run { start, length });
        }
    }

    /// Returns the window that contains `time`.
    pub fn around(&self, time: Timestamp) -> Range<Timestamp> {
        let later = self.runs.partition_point(|run| run.start <= time);
        let Some(run) = later.checked_sub(1).map(|last| self.runs[last]) else {
            let end = self.runs.first().map_or(Timestamp::MAX, |first| first.start);
            return Timestamp::UNIX_EPOCH..end;
        };
        if run.length == Window::ENDLESS.as_nanos() {
            return run.start..Timestamp::MAX;
        }
        let start = time.sub_nanos(time.nanos_since(run.start) % run.length);
        start..start.add_nanos(run.length)
    }

    /// Returns the start and the window length of each run, from the window that contains `time`; never empty.
    pub fn runs(&self, time: Timestamp) -> impl Iterator<Item = (Timestamp, u64)> {
        let window = self.around(time);
        let later = self.runs.partition_point(|run| run.start <= time);
        let first = (window.start, window.end.nanos_since(window.start));
        let later = self.runs[later..].iter().map(|run| (run.start, run.length));
        core::iter::once(first).chain(later)
    }

    /// Returns the length of the shortest window in nanoseconds.
    pub(crate) fn shortest(&self) -> u64 {
        self.runs.iter().map(|run| run.length).min().unwrap_or(u64::MAX)
    }

    /// Returns the length of the longest window in nanoseconds.
    pub(crate) fn longest(&self) -> u64 {
        self.runs.iter().map(|run| run.length).max().unwrap_or(u64::MAX)
    }
}
