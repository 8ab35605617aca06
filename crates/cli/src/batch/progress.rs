//! The progress line on a terminal.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::Duration;

use console::{Term, measure_text_width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::{HumanDuration, counted, notify, whole};

/// The progress line on stderr, if shown.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    total: Option<u64>,
    pace: Pace,
}

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Finished lines: succeeded, failed, or finished by an earlier run.
    pub done: u64,
    /// Lines that failed in this run.
    pub failed: u64,
    /// The usage of each model.
    pub models: Vec<ModelUsage>,
    /// The number of 429 responses.
    pub rate_limited: u64,
    /// Time since the run began.
    pub elapsed: Duration,
    /// The remaining time at the limits, as estimated by `--dry-run`; `None` until it is known.
    pub left_at_limits: Option<Duration>,
}

/// The usage of a model's limits per minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// The model.
    pub model: String,
    /// Requests of the last minute.
    pub rpm: Gauge,
    /// Tokens of the last minute.
    pub tpm: Gauge,
}

/// The usage of a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauge {
    /// The amount used.
    pub used: u64,
    /// The limit; 0 where there is none.
    pub limit: u64,
}

impl Progress {
    /// Returns a progress line for `total` lines, if counted. Shows nothing unless `enabled` and
    /// stderr is a terminal.
    pub fn new(total: Option<u64>, enabled: bool) -> Self {
        let bar = Self::is_shown(enabled).then(|| {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
            let template = if total.is_some() { "[{bar:10}] {wide_msg}" } else { "{wide_msg}" };
            bar.with_style(style(template))
        });
        Self { bar, total, pace: Pace::default() }
    }

    /// Returns true if the line would be shown.
    pub(super) fn is_shown(enabled: bool) -> bool {
        enabled && std::io::stderr().is_terminal()
    }

    /// Updates the line. A few times per second is enough.
    pub fn update(&mut self, snapshot: &Snapshot) {
        let Some(bar) = &self.bar else { return };
        self.pace.record(snapshot.elapsed, snapshot.done);
        let left = self.total.and_then(|total| self.pace.time_left(total, snapshot.left_at_limits));
        bar.set_position(snapshot.done);
        let prefix = if self.total.is_some() { BAR_WIDTH } else { 0 };
        let width = usize::from(Term::stderr().size().1).saturating_sub(prefix);
        bar.set_message(fitted(status(snapshot, self.total, left), width));
    }

    /// Prints a notice on stderr, above the line.
    pub fn notify(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| notify(&text)),
            None => notify(&text),
        }
    }

    /// Clears the line.
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
    let usage = usage(&snapshot.models);
    let rate_limited = whole(snapshot.rate_limited);
    let left =
        left.map_or_else(String::new, |left| format!("  about {} left", HumanDuration::of(left)));
    format!("{done}{left}  {failed} failed  429s {rate_limited}{usage}")
}

/// Truncates a status to the width of the terminal, between two values: a part of a number would
/// be another number.
fn fitted(mut status: String, width: usize) -> String {
    let ends = status.match_indices("  ").map(|(end, _)| end).chain([status.len()]);
    if let Some(end) = ends.take_while(|&end| measure_text_width(&status[..end]) <= width).last() {
        status.truncate(end);
    }
    status
}

/// Formats the usage of the models closest to their limits. Models in the same tenth of their limits
/// are in the order of their names, so that they don't change places with each update.
fn usage(models: &[ModelUsage]) -> String {
    if let [model] = models {
        return format!("  {}", model.limits());
    }
    let mut models: Vec<_> = models.iter().collect();
    models.sort_by_key(|model| (Reverse(model.tenth()), model.model.as_str()));
    let mut text = String::new();
    for usage in models.iter().take(MODELS) {
        text += &format!("  {} {}", usage.model, usage.limits());
    }
    match models.len().saturating_sub(MODELS) {
        0 => text,
        more => format!("{text}  and {}", counted(more as u64, "more model")),
    }
}

impl ModelUsage {
    /// Returns the used tenths of the limit that is used most.
    fn tenth(&self) -> u64 {
        self.rpm.percent().max(self.tpm.percent()) / 10
    }

    fn limits(&self) -> String {
        format!("rpm {}  tpm {}", gauge(self.rpm), gauge(self.tpm))
    }
}

impl Gauge {
    fn percent(self) -> u64 {
        self.used.saturating_mul(100).checked_div(self.limit).unwrap_or_default()
    }
}

fn gauge(gauge: Gauge) -> String {
    match gauge.limit {
        // Without a limit, usage is not counted.
        0 if gauge.used == 0 => "-".to_owned(),
        0 => whole(gauge.used),
        limit => format!("{}/{}", whole(gauge.used), whole(limit)),
    }
}

/// The pace of the last minute, which excludes the burst at the start.
#[derive(Debug, Default)]
struct Pace {
    past: VecDeque<(Duration, u64)>,
}

impl Pace {
    fn record(&mut self, elapsed: Duration, done: u64) {
        let last = self.past.back().map(|&(at, _)| at);
        if last.is_none_or(|last| elapsed >= last + SAMPLE_INTERVAL) {
            self.past.push_back((elapsed, done));
        }
        // One sample older than a minute is kept as the start of the minute.
        while self.past.get(1).is_some_and(|&(at, _)| at + MINUTE <= elapsed) {
            self.past.pop_front();
        }
    }

    /// Estimates the remaining time: at the limits, or at the pace of the last minute if that is
    /// longer. Without limits the pace decides.
    fn time_left(&self, total: u64, at_limits: Option<Duration>) -> Option<Duration> {
        let is_limited = at_limits.is_some_and(|left| !left.is_zero());
        let at_pace = self.at_pace(total).filter(|_| !is_limited || self.span() >= MINUTE);
        at_limits.max(at_pace).filter(|_| at_limits.is_some())
    }

    fn span(&self) -> Duration {
        let ends = self.past.front().zip(self.past.back());
        ends.map_or(Duration::ZERO, |((first, _), (last, _))| last.saturating_sub(*first))
    }

    fn at_pace(&self, total: u64) -> Option<Duration> {
        let (&(since, before), &(now, done)) = (self.past.front()?, self.past.back()?);
        let finished = u128::from(done.checked_sub(before)?);
        let nanos = u128::from(total.saturating_sub(done)) * (now - since).as_nanos();
        let left = nanos.checked_div(finished)?;
        Some(Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX)))
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// The number of models shown.
const MODELS: usize = 3;
/// Columns of the bar and the space after it.
const BAR_WIDTH: usize = 13;

#[cfg(test)]
mod tests {
    use super::*;

    fn usage_of(model: &str, rpm: Gauge, tpm: Gauge) -> ModelUsage {
        ModelUsage { model: model.to_owned(), rpm, tpm }
    }

    fn gauge(used: u64, limit: u64) -> Gauge {
        Gauge { used, limit }
    }

    #[test]
    fn status_shows_counts_429s_limits_and_time_left() {
        let snapshot = Snapshot {
            done: 1_234,
            failed: 2,
            models: vec![usage_of("m", gauge(480, 500), gauge(29_000, 0))],
            rate_limited: 1,
            ..Snapshot::default()
        };
        assert_eq!(
            status(&snapshot, Some(5_000), Some(Duration::from_secs(10 * 3_600 + 59 * 60))),
            "1,234/5,000  about 10h 59m left  2 failed  429s 1  rpm 480/500  tpm 29,000"
        );
        assert!(status(&snapshot, None, None).starts_with("1,234 done  2 failed"));
    }

    #[test]
    fn status_lists_models_with_highest_usage_first() {
        let models = vec![
            usage_of("a", gauge(5, 500), gauge(0, 0)),
            usage_of("b", gauge(1, 500), gauge(90, 100)),
            usage_of("c", gauge(0, 500), gauge(0, 0)),
            usage_of("d", gauge(100, 500), gauge(0, 0)),
        ];
        let snapshot = Snapshot { models, ..Snapshot::default() };
        assert_eq!(
            status(&snapshot, None, None),
            "0 done  0 failed  429s 0  b rpm 1/500  tpm 90/100  d rpm 100/500  tpm -  a rpm 5/500  \
             tpm -  and 1 more model"
        );
    }

    #[test]
    fn status_orders_models_with_similar_usage_by_name() {
        let models = vec![
            usage_of("b", gauge(0, 0), gauge(92, 100)),
            usage_of("a", gauge(0, 0), gauge(91, 100)),
        ];
        assert_eq!(usage(&models), "  a rpm -  tpm 91/100  b rpm -  tpm 92/100");
    }

    #[test]
    fn fitted_truncates_between_values() {
        let status = || "24/300  gpt-4o rpm 46/500  tpm 7/9".to_owned();
        assert_eq!(fitted(status(), 34), status());
        assert_eq!(fitted(status(), 33), "24/300  gpt-4o rpm 46/500");
        assert_eq!(fitted(status(), 20), "24/300");
    }

    #[test]
    fn time_left_follows_limits_unless_pace_is_slower() {
        let mut pace = Pace::default();
        let at_limits = Some(Duration::from_secs(301));
        assert_eq!(pace.time_left(3_000, None), None, "no data yet");
        pace.record(Duration::ZERO, 0);
        pace.record(Duration::from_secs(1), 500);
        assert_eq!(pace.time_left(3_000, at_limits), at_limits, "the initial burst is ignored");
        let unlimited = pace.time_left(3_000, Some(Duration::ZERO));
        assert_eq!(unlimited, Some(Duration::from_secs(5)), "only the pace is known");
        for second in 2..=61 {
            pace.record(Duration::from_secs(second), 500 + second);
        }
        let left = pace.time_left(3_000, at_limits).expect("the remaining time is known");
        assert!(left > Duration::from_secs(2_000), "the server is slower: {left:?}");
    }

    #[test]
    fn pace_covers_last_minute_without_initial_burst() {
        let mut pace = Pace::default();
        pace.record(Duration::ZERO, 0);
        assert_eq!(pace.at_pace(1_000), None, "no data yet");
        for second in 1..=120 {
            pace.record(Duration::from_secs(second), 500 + 2 * second);
        }
        assert!(pace.past.len() < 65);
        assert_eq!(pace.at_pace(1_000), Some(Duration::from_secs(130)));
    }
}
