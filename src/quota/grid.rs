use core::ops::Range;

use super::Window;

/// All of time cut into windows without gaps: what the engine sees of a clock or a calendar.
///
/// Times are nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    /// In order of time, each going on to the start of the next. Before the first there is one
    /// window, from the epoch to its start.
    runs: Vec<Run>,
}

/// Windows of one length, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    start: u64,
    length: u64,
}

impl Grid {
    /// Windows of one length that start at its multiples.
    pub(crate) fn every(window: Window) -> Self {
        Self { runs: vec![Run { start: 0, length: window.as_nanos() }] }
    }

    /// Windows of this length from `start` on, until the next start; later than all before. One
    /// without length is left out.
    pub(super) fn push(&mut self, start: u64, length: u64) {
        if length > 0 && self.runs.last().is_none_or(|last| last.length != length) {
            self.runs.push(Run { start, length });
        }
    }

    /// The window that `time` lies in.
    pub(crate) fn around(&self, time: u64) -> Range<u64> {
        let later = self.runs.partition_point(|run| run.start <= time);
        let Some(run) = later.checked_sub(1).map(|last| self.runs[last]) else {
            return 0..self.runs.first().map_or(u64::MAX, |first| first.start);
        };
        let start = time - (time - run.start) % run.length;
        start..start.saturating_add(run.length)
    }

    /// From when on windows are how long, from the window around `time` on; never empty.
    #[cfg(feature = "redis")]
    pub(crate) fn runs(&self, time: u64) -> impl Iterator<Item = (u64, u64)> {
        let window = self.around(time);
        let later = self.runs.partition_point(|run| run.start <= time);
        let first = (window.start, window.end - window.start);
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
