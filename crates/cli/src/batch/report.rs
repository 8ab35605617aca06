//! The report of a run.

use std::borrow::Cow;
use std::fmt;

use comfy_table::CellAlignment::{Left, Right};
use serde::{Deserialize, Serialize};

pub use super::failures::{FailureCount, FailureExample};
pub use super::learned_report::LearnedReport;
use crate::latencies::Latencies;
use crate::terminal::{plain_table, printable, whole};

/// The report of a run: `Display` prints a table, serde the JSON. Field names are stable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Input lines handled by this run, including invalid ones; `succeeded + failed`.
    pub requests: u64,
    /// Successful requests.
    pub succeeded: u64,
    /// Failed requests and invalid lines.
    pub failed: u64,
    /// Lines finished by earlier runs.
    pub skipped: u64,
    /// Skipped lines that had failed.
    #[serde(default)]
    pub failed_earlier: u64,
    /// The number of retries.
    pub retries: u64,
    /// The number of 429 responses.
    pub rate_limited: u64,
    /// The duration of the run, in seconds.
    pub elapsed_s: f64,
    /// The duration of an ideal sender with zero latency, for the same requests, limits, burst and
    /// margin, in seconds.
    pub ideal_s: f64,
    /// `ideal_s` divided by the time to the last send: 1 is as fast as the limits allow. `None` if
    /// no limit delayed the run, or if it was faster than its limits because they were raised or
    /// reset meanwhile.
    pub utilization: Option<f64>,
    /// True if the limits are shared with other machines (`cluster`): `ideal_s` then assumes the
    /// whole limits, and `utilization` is this run's part.
    #[serde(default)]
    pub shared: bool,
    /// Prompt tokens reported by responses.
    pub input_tokens: u64,
    /// Generated tokens reported by responses.
    pub output_tokens: u64,
    /// Tokens charged by the provider's rule.
    pub charged_tokens: u64,
    /// The price of the reported usage, in dollars. `None` if a model has no known price.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Reserved minus charged tokens, divided by charged tokens: 0.1 is 10 % too many. `None` if
    /// nothing was charged.
    pub estimate_error: Option<f64>,
    /// The median wait for the limits, in seconds.
    pub wait_p50_s: f64,
    /// The 99th percentile of waits for the limits, in seconds.
    pub wait_p99_s: f64,
    /// The failures by cause, most frequent first.
    #[serde(default)]
    pub failures: Vec<FailureCount>,
    /// The limits measured by the provider's answers, at the end of the run.
    #[serde(default)]
    pub learned: Vec<LearnedReport>,
}

impl Report {
    /// Sets the percentiles of the waits.
    pub(super) fn with_waits(mut self, waits: &Latencies) -> Self {
        self.wait_p50_s = waits.quantile(0.5).as_secs_f64();
        self.wait_p99_s = waits.quantile(0.99).as_secs_f64();
        self
    }

    /// Sets the utilization of a run that sent its last request after `last_send_s` seconds.
    #[must_use]
    pub fn with_last_send(mut self, last_send_s: f64) -> Self {
        let utilization = ratio(self.ideal_s, last_send_s).filter(|_| self.ideal_s > 0.0);
        self.utilization = utilization.filter(|part| *part <= FASTEST);
        self
    }

    /// Sets `charged_tokens`, and the estimation error of `reserved` tokens.
    #[must_use]
    pub fn with_charge(mut self, reserved: u64, charged: u64) -> Self {
        self.charged_tokens = charged;
        self.estimate_error = ratio(reserved as f64 - charged as f64, charged as f64);
        self
    }

    /// Returns the report as pretty-printed JSON with a trailing newline.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("numbers always serialize");
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

    fn rows(&self) -> [[String; 4]; 16] {
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
            row("cost", dollars(self.cost_usd), "of the reported usage, at list prices"),
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
        // A unit follows its number.
        if let Some(numbers) = table.column_mut(1) {
            numbers.set_padding((0, 1));
        }
        f.write_str(&table.trim_fmt())?;
        if !self.learned.is_empty() {
            f.write_str("\n\nlearned limits")?;
        }
        for LearnedReport { key, text, advice, .. } in &self.learned {
            write!(f, "\n  {}: {text}", printable(key))?;
            if let Some(advice) = advice {
                write!(f, "\n    {advice}")?;
            }
        }
        if self.failures.is_empty() {
            return Ok(());
        }
        let failures =
            self.failures.iter().map(|FailureCount { code, reason, count, example, .. }| {
                let FailureExample { custom_id, message } = example;
                let reason =
                    reason.as_ref().map(|reason| format!("{reason}; ")).unwrap_or_default();
                let example = format!("{reason}{custom_id:?}: {}", printable(message));
                [format!("  {code}"), whole(*count), example]
            });
        let failures = plain_table([Left, Right, Left], failures);
        write!(f, "\n\nfailures by cause\n{}", failures.trim_fmt())
    }
}

/// The highest plausible utilization, allowing for rounding in short runs.
const FASTEST: f64 = 1.1;

/// A formatted number and its unit.
struct Measurement {
    number: String,
    unit: &'static str,
}

/// Returns the cells of a row: name, number, unit and note.
fn row(name: &str, measured: Measurement, note: &str) -> [String; 4] {
    [name.to_owned(), measured.number, measured.unit.to_owned(), note.to_owned()]
}

fn count(number: u64) -> Measurement {
    Measurement { number: whole(number), unit: "" }
}

fn dollars(dollars: Option<f64>) -> Measurement {
    let number = dollars.map_or_else(|| "-".to_owned(), |dollars| format!("${dollars:.4}"));
    Measurement { number, unit: "" }
}

fn seconds(seconds: f64) -> Measurement {
    Measurement { number: format!("{seconds:.2}"), unit: "s" }
}

fn percent(share: Option<f64>) -> Measurement {
    match share {
        Some(share) => Measurement { number: format!("{:.1}", share * 100.0), unit: "%" },
        None => Measurement { number: "-".to_owned(), unit: "" },
    }
}

fn ratio(part: f64, of: f64) -> Option<f64> {
    Some(part / of).filter(|ratio| of > 0.0 && ratio.is_finite())
}
