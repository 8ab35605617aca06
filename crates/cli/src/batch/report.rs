//! What is told at the end of a run.

use std::borrow::Cow;
use std::fmt;

use comfy_table::CellAlignment::{Left, Right};
use serde::{Deserialize, Serialize};

pub use super::failures::{FailureCount, FailureExample};
use crate::latencies::Latencies;
use crate::terminal::{plain_table, printable, whole};

/// The report of a run: `Display` for people, serde for programs. Field names are a contract.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Lines of the input that this run dealt with, bad lines included; `succeeded + failed`.
    pub requests: u64,
    /// Requests that the provider answered as asked.
    pub succeeded: u64,
    /// Requests that failed, and bad lines.
    pub failed: u64,
    /// Lines that this run left alone, since an earlier one had answered them or they had failed for
    /// good.
    pub skipped: u64,
    /// Those of them that had failed.
    #[serde(default)]
    pub failed_earlier: u64,
    /// Requests that were sent again, each time counted.
    pub retries: u64,
    /// 429s seen.
    pub rate_limited: u64,
    /// From the start of the run to its end, in seconds.
    pub elapsed_s: f64,
    /// What a zero-latency first-in-first-out sender takes for the same requests against the same
    /// limits, burst and margin counted, in seconds.
    pub ideal_s: f64,
    /// `ideal_s` by the time to the last send: 1 is as fast as the limits allow. `None` where no
    /// limit held the run up, and where it was faster than its limits: they were raised, or their
    /// usage was forgotten, while it went on.
    pub utilization: Option<f64>,
    /// Whether other machines take of the same limits (`cluster` in the configuration): then
    /// `ideal_s` is what it would take with all of them, and `utilization` this run's part.
    #[serde(default)]
    pub shared: bool,
    /// Tokens of the prompts, as the responses report them.
    pub input_tokens: u64,
    /// Tokens generated, as the responses report them.
    pub output_tokens: u64,
    /// Tokens that the provider took for the requests, by its rule.
    pub charged_tokens: u64,
    /// Tokens reserved more (or, below 0, less) than charged, by those charged: 0.1 is 10 % too
    /// many. `None` where nothing was charged.
    pub estimate_error: Option<f64>,
    /// The wait for the limits that half of the requests did not exceed, in seconds.
    pub wait_p50_s: f64,
    /// The wait for the limits that 99 % of the requests did not exceed, in seconds.
    pub wait_p99_s: f64,
    /// What `failed` counts, by cause, the most frequent first.
    #[serde(default)]
    pub failures: Vec<FailureCount>,
}

impl Report {
    /// Sets the percentiles of the waits.
    pub(super) fn with_waits(mut self, waits: &Latencies) -> Self {
        self.wait_p50_s = waits.quantile(0.5).as_secs_f64();
        self.wait_p99_s = waits.quantile(0.99).as_secs_f64();
        self
    }

    /// The same report, with the utilization of a run that sent its last request after
    /// `last_send_s` seconds.
    #[must_use]
    pub fn with_last_send(mut self, last_send_s: f64) -> Self {
        let utilization = ratio(self.ideal_s, last_send_s).filter(|_| self.ideal_s > 0.0);
        self.utilization = utilization.filter(|part| *part <= FASTEST);
        self
    }

    /// The same report, with `charged_tokens`, and the error of an estimate that reserved
    /// `reserved` tokens for them.
    #[must_use]
    pub fn with_charge(mut self, reserved: u64, charged: u64) -> Self {
        self.charged_tokens = charged;
        self.estimate_error = ratio(reserved as f64 - charged as f64, charged as f64);
        self
    }

    /// The report as JSON of one line per field, newline at the end.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("numbers always serialise");
        json.push('\n');
        json
    }

    fn utilization_note(&self) -> &'static str {
        match self.shared {
            true => "this run's part of the shared limits",
            false => "ideal / time to the last send",
        }
    }

    fn skipped_note(&self) -> Cow<'static, str> {
        match self.failed_earlier {
            0 => "finished by an earlier run".into(),
            failed => format!(
                "{} failed in an earlier run; send them again with --retry-failed",
                whole(failed)
            )
            .into(),
        }
    }

    fn rows(&self) -> [[String; 4]; 15] {
        [
            row("requests", count(self.requests), ""),
            row("succeeded", count(self.succeeded), ""),
            row("failed", count(self.failed), ""),
            row("skipped", count(self.skipped), &self.skipped_note()),
            row("retries", count(self.retries), ""),
            row("rate limited", count(self.rate_limited), "429 responses"),
            row("elapsed", seconds(self.elapsed_s), ""),
            row("ideal", seconds(self.ideal_s), "at the limits, with zero latency"),
            row("utilization", percent(self.utilization), self.utilization_note()),
            row("input tokens", count(self.input_tokens), ""),
            row("output tokens", count(self.output_tokens), ""),
            row("charged tokens", count(self.charged_tokens), "against the token limit"),
            row("estimate error", percent(self.estimate_error), "reserved minus charged"),
            row("wait p50", seconds(self.wait_p50_s), "queued for the limits"),
            row("wait p99", seconds(self.wait_p99_s), ""),
        ]
    }
}

impl fmt::Display for Report {
    /// Writes a table with one line per field, and a table of failures by cause if there are any, without
    /// a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = plain_table([Left, Right, Left, Left], self.rows());
        // A unit follows its value.
        if let Some(values) = table.column_mut(1) {
            values.set_padding((0, 1));
        }
        f.write_str(&table.trim_fmt())?;
        if self.failures.is_empty() {
            return Ok(());
        }
        let failures = self.failures.iter().map(|FailureCount { code, count, example }| {
            let FailureExample { custom_id, message } = example;
            [format!("  {code}"), whole(*count), format!("{custom_id:?}: {}", printable(message))]
        });
        let failures = plain_table([Left, Right, Left], failures);
        write!(f, "\n\nfailures by cause\n{}", failures.trim_fmt())
    }
}

/// Above which a run was faster than its limits, the roundings of a short one counted.
const FASTEST: f64 = 1.1;

/// Returns the cells of a row: name, value, unit and note.
fn row(name: &str, (value, unit): (String, &str), note: &str) -> [String; 4] {
    [name.to_owned(), value, unit.to_owned(), note.to_owned()]
}

fn count(number: u64) -> (String, &'static str) {
    (whole(number), "")
}

fn seconds(seconds: f64) -> (String, &'static str) {
    (format!("{seconds:.2}"), "s")
}

fn percent(share: Option<f64>) -> (String, &'static str) {
    match share {
        Some(share) => (format!("{:.1}", share * 100.0), "%"),
        None => ("-".to_owned(), ""),
    }
}

fn ratio(part: f64, of: f64) -> Option<f64> {
    Some(part / of).filter(|ratio| of > 0.0 && ratio.is_finite())
}
