use core::ops::Range;

use super::Window;
use crate::timestamp::Timestamp;

/// All of time cut into windows without gaps: what the engine sees of a clock or a calendar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    /// In order of time, each going on to the start of the next. Before the first there is one
    /// window, from the epoch to its start.
    runs: Vec<Run>,
}

/// Windows of one length, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    start: Timestamp,
    length: u64,
}

impl Grid {
    /// Windows of one length that start at its multiples.
    pub(crate) fn every(window: Window) -> Self {
        Self { runs: vec![Run { start: Timestamp::UNIX_EPOCH, length: window.as_nanos() }] }
    }

    /// Windows of this length from `start` on, until the next start; later than all before. One
    /// without length is left out.
    pub(super) fn push(&mut self, start: Timestamp, length: u64) {
        if length > 0 && self.runs.last().is_none_or(|last| last.length != length) {
            self.runs.push(Run { start, length });
        }
    }

    /// The window that `time` lies in.
    pub(crate) fn around(&self, time: Timestamp) -> Range<Timestamp> {
        let later = self.runs.partition_point(|run| run.start <= time);
        let Some(run) = later.checked_sub(1).map(|last| self.runs[last]) else {
            let end = self.runs.first().map_or(Timestamp::MAX, |first| first.start);
            return Timestamp::UNIX_EPOCH..end;
        };
        let start = time.sub_nanos(time.nanos_since(run.start) % run.length);
        start..start.add_nanos(run.length)
    }

    /// From when on windows are how long, from the window around `time` on; never empty.
    #[cfg(feature = "redis")]
    pub(crate) fn runs(&self, time: Timestamp) -> impl Iterator<Item = (Timestamp, u64)> {
        let window = self.around(time);
        let later = self.runs.partition_point(|run| run.start <= time);
        let first = (window.start, window.end.nanos_since(window.start));
        let later = self.runs[later..].iter().map(|run| (run.start, run.length));
        core::iter::once(first).chain(later)
    }

    /// The length of the shortest window, in nanoseconds.
    pub(crate) fn shortest(&self) -> u64 {
        self.runs.iter().map(|run| run.length).min().unwrap_or(u64::MAX)
    }

    /// The length of the longest window, in nanoseconds.
    pub(crate) fn longest(&self) -> u64 {
        self.runs.iter().map(|run| run.length).max().unwrap_or(u64::MAX)
    }
}
