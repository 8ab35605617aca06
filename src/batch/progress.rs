//! The line that a run shows on a terminal.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::{say, whole};

/// Progress on stderr, or nothing at all.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    total: Option<u64>,
    pace: Pace,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Lines done with: succeeded, failed, or finished by an earlier run.
    pub done: u64,
    /// Those of them that failed in this run.
    pub failed: u64,
    /// Requests of the last minute.
    pub rpm: Gauge,
    /// Tokens of the last minute.
    pub tpm: Gauge,
    /// 429s seen.
    pub rate_limited: u64,
    /// Time since the run began.
    pub elapsed: Duration,
}

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauge {
    /// What is used.
    pub used: u64,
    /// The limit; 0 where there is none.
    pub limit: u64,
}

impl Progress {
    /// Progress towards `total` lines, if they were counted. Shows nothing unless `enabled` and
    /// stderr is a terminal.
    pub fn new(total: Option<u64>, enabled: bool) -> Self {
        let bar = Self::is_shown(enabled).then(|| {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
            let template = if total.is_some() { "[{bar:10}] {wide_msg}" } else { "{wide_msg}" };
            bar.with_style(style(template))
        });
        Self { bar, total, pace: Pace::default() }
    }

    /// Whether anybody would see it.
    pub(super) fn is_shown(enabled: bool) -> bool {
        enabled && std::io::stderr().is_terminal()
    }

    /// Shows how the run stands. A few times per second is enough.
    pub fn update(&mut self, snapshot: &Snapshot) {
        let Some(bar) = &self.bar else { return };
        self.pace.note(snapshot.elapsed, snapshot.done);
        let left = self.total.and_then(|total| self.pace.time_left(total));
        bar.set_position(snapshot.done);
        bar.set_message(status(snapshot, self.total, left));
    }

    /// Says something on stderr, above the line.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(&text)),
            None => say(&text),
        }
    }

    /// Clears the line: the report takes its place.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is a constant")
        .progress_chars("=> ")
}

fn status(snapshot: &Snapshot, total: Option<u64>, left: Option<Duration>) -> String {
    let done = match total {
        Some(total) => format!("{}/{}", whole(snapshot.done), whole(total)),
        None => format!("{} done", whole(snapshot.done)),
    };
    let failed = whole(snapshot.failed);
    let (rpm, tpm) = (gauge(snapshot.rpm), gauge(snapshot.tpm));
    let refused = whole(snapshot.rate_limited);
    let left = left.map_or_else(String::new, |left| format!("  {} left", clock(left)));
    // A narrow terminal cuts the end off.
    format!("{done}{left}  {failed} failed  rpm {rpm}  tpm {tpm}  429s {refused}")
}

fn gauge(gauge: Gauge) -> String {
    match gauge.limit {
        // Where nothing is limited nothing is counted.
        0 if gauge.used == 0 => "-".to_owned(),
        0 => whole(gauge.used),
        limit => format!("{}/{}", whole(gauge.used), whole(limit)),
    }
}

/// `59s`, `1m05s`, `2h07m`: rounded up to a second, or down to a minute.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// How fast the last minute went: a burst at the start says nothing of the rest.
#[derive(Debug, Default)]
struct Pace {
    past: VecDeque<(Duration, u64)>,
}

impl Pace {
    fn note(&mut self, elapsed: Duration, done: u64) {
        let last = self.past.back().map(|&(at, _)| at);
        if last.is_none_or(|last| elapsed >= last + BETWEEN) {
            self.past.push_back((elapsed, done));
        }
        // One sample older than the minute stays: the minute is measured from it.
        while self.past.get(1).is_some_and(|&(at, _)| at + MINUTE <= elapsed) {
            self.past.pop_front();
        }
    }

    fn time_left(&self, total: u64) -> Option<Duration> {
        let (&(since, before), &(now, done)) = (self.past.front()?, self.past.back()?);
        let finished = u128::from(done.checked_sub(before)?);
        let nanos = u128::from(total.saturating_sub(done)) * (now - since).as_nanos();
        let left = nanos.checked_div(finished)?;
        Some(Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX)))
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const BETWEEN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_shows_counts_limits_429s_and_the_time_left() {
        let snapshot = Snapshot {
            done: 1_234,
            failed: 2,
            rpm: Gauge { used: 480, limit: 500 },
            tpm: Gauge { used: 29_000, limit: 0 },
            rate_limited: 1,
            elapsed: Duration::from_secs(9),
        };
        assert_eq!(
            status(&snapshot, Some(5_000), Some(Duration::from_millis(64_100))),
            "1,234/5,000  1m05s left  2 failed  rpm 480/500  tpm 29,000  429s 1"
        );
        assert!(status(&snapshot, None, None).starts_with("1,234 done  2 failed"));
    }

    #[test]
    fn the_time_left_follows_the_last_minute_and_forgets_the_burst_before_it() {
        let mut pace = Pace::default();
        pace.note(Duration::ZERO, 0);
        assert_eq!(pace.time_left(1_000), None, "nothing is known yet");
        for second in 1..=120 {
            pace.note(Duration::from_secs(second), 500 + 2 * second);
        }
        assert!(pace.past.len() < 65);
        assert_eq!(pace.time_left(1_000), Some(Duration::from_secs(130)));
    }

    #[test]
    fn long_times_are_told_in_hours_and_minutes() {
        assert_eq!(clock(Duration::from_secs(2 * 3600 + 7 * 60 + 59)), "2h07m");
        assert_eq!(clock(Duration::from_nanos(1)), "1s");
    }
}
