//! The statistics of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;

use super::failures::Failures;
use super::forecast::Forecast;
use super::ideal::Ideal;
use super::learned_report::LearnedReport;
use super::outcome::Outcome;
use super::progress::{Gauge, ModelUsage, Snapshot};
use super::report::Report;
use crate::latencies::Latencies;
use paceline::Timestamp;
use paceline::limiter::{LimitStats, Limiter};
use paceline::middleware::Facts;
use paceline::price::PriceList;
use paceline::provider::Profile;
use paceline::quota::{Cost, Dimension, Window};

/// The statistics for the report and the progress line.
#[derive(Debug)]
pub(super) struct RunStats {
    limiter: Limiter,
    started: Timestamp,
    last_send: Option<Timestamp>,
    answered_at: Timestamp,
    report: Report,
    failures: Failures,
    reserved: u64,
    profile: Profile,
    prices: PriceList,
    /// The price of the reported usage, in micro-dollars; `None` once a model has no known price.
    cost: Option<u64>,
    waits: Latencies,
    ideal: Ideal,
    /// The number of finished lines by model.
    models: BTreeMap<String, usize>,
    forecast: Option<Forecast>,
}

impl RunStats {
    pub(super) fn new(limiter: Limiter, profile: Profile, prices: PriceList) -> Self {
        Self {
            started: limiter.now(),
            limiter,
            last_send: None,
            answered_at: Timestamp::UNIX_EPOCH,
            report: Report::default(),
            failures: Failures::default(),
            reserved: 0,
            profile,
            prices,
            cost: Some(0),
            waits: Latencies::default(),
            ideal: Ideal::new(profile),
            models: BTreeMap::new(),
            forecast: None,
        }
    }

    /// Counts a line finished by an earlier run.
    pub(super) fn skipped(&mut self, failed: bool) {
        self.report.skipped += 1;
        self.report.failed_earlier += u64::from(failed);
    }

    /// Sets the forecast for the remaining time.
    pub(super) fn set_forecast(&mut self, forecast: Forecast) {
        self.forecast = Some(forecast);
    }

    /// Counts a finished line by its last attempt.
    pub(super) fn finished(&mut self, facts: &Facts) {
        if facts.granted_at.is_some() {
            *self.models.entry(facts.key.to_string()).or_default() += 1;
        }
    }

    /// Counts an outcome. `body` is the body of its request.
    pub(super) fn done(&mut self, outcome: &Outcome, body: &[u8]) {
        self.report.requests += 1;
        match outcome.failure() {
            None => {
                self.report.succeeded += 1;
                self.answered_at = self.limiter.now();
            }
            Some(failure) => {
                self.report.failed += 1;
                self.failures.add(outcome.custom_id(), failure, body);
            }
        }
    }

    /// Returns the time at which the last line was answered; the Unix epoch before that.
    pub(super) fn answered_at(&self) -> Timestamp {
        self.answered_at
    }

    /// Counts all attempts of a line.
    pub(super) fn sent(&mut self, facts: &Facts) {
        for one in facts.earlier.iter().chain([facts]) {
            self.count_attempt(one);
        }
        self.report.retries += facts.earlier.len() as u64;
    }

    /// Counts an attempt that was sent: its wait, and its reservation and charge if it was
    /// admitted.
    fn count_attempt(&mut self, facts: &Facts) {
        let (Some(granted_at), Some(reserved), Some(_)) =
            (facts.granted_at, &facts.reserved, &facts.charged)
        else {
            return;
        };
        self.last_send = self.last_send.max(Some(granted_at));
        self.waits.record(facts.waited);
        if !self.models.contains_key(facts.key.as_str()) {
            self.models.insert(facts.key.to_string(), 0);
        }
        match facts.status {
            Some(StatusCode::TOO_MANY_REQUESTS) => self.report.rate_limited += 1,
            Some(status) if status.is_success() => self.admitted(facts, reserved),
            _ => {}
        }
    }

    fn admitted(&mut self, facts: &Facts, reserved: &Cost) {
        let charged = facts.charged.as_ref().unwrap_or(reserved);
        self.reserved += tokens(reserved);
        self.report.charged_tokens += tokens(charged);
        if let Some(usage) = &facts.usage {
            self.report.input_tokens += usage.input;
            self.report.output_tokens += usage.output;
            let price = self.prices.current().of(self.profile, &facts.key);
            self.cost = self.cost.zip(price).map(|(cost, price)| cost + price.cost(usage));
        }
        self.ideal.send(&facts.key, || self.limiter.quotas().of(&facts.key), reserved, charged);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let Report { requests, failed, skipped, rate_limited, .. } = self.report;
        Snapshot {
            done: requests + skipped,
            failed,
            models: self.models.keys().map(|model| self.usage(model)).collect(),
            rate_limited,
            elapsed: self.elapsed(),
            left_at_limits: self.left_at_limits(),
        }
    }

    fn left_at_limits(&self) -> Option<Duration> {
        let finished = |model: &str| self.models.get(model).copied().unwrap_or_default();
        self.forecast.as_ref().map(|forecast| forecast.left(finished))
    }

    pub(super) fn report(&self) -> Report {
        let report = Report {
            elapsed_s: self.elapsed().as_secs_f64(),
            ideal_s: self.ideal.duration().as_secs_f64(),
            failures: self.failures.by_count(),
            learned: self.learned(),
            cost_usd: self.cost.map(|micro_dollars| micro_dollars as f64 / 1e6),
            ..self.report.clone()
        };
        let last = self.last_send.unwrap_or(self.started) - self.started;
        report
            .with_waits(&self.waits)
            .with_charge(self.reserved, self.report.charged_tokens)
            .with_last_send(last.as_secs_f64())
    }

    /// Returns the limits that the models are held to because of the provider's answers.
    fn learned(&self) -> Vec<LearnedReport> {
        let now = self.limiter.now();
        let of_model = |model: &String| {
            let all = self.limiter.stats(model).learned;
            let principal = all.iter().filter(|limit| limit.is_principal(&all));
            principal.map(|limit| LearnedReport::new(model, limit, now)).collect::<Vec<_>>()
        };
        self.models.keys().flat_map(of_model).collect()
    }

    fn elapsed(&self) -> Duration {
        self.limiter.now() - self.started
    }

    /// Returns the usage of a model's limits per minute.
    fn usage(&self, model: &str) -> ModelUsage {
        let limits = self.limiter.stats(model).limits;
        let gauge = |dimension| {
            let minutes = |l: &&LimitStats| l.dimension == dimension && l.window == Window::MINUTE;
            limits.iter().find(minutes).map_or_else(Gauge::default, |limit| Gauge {
                used: limit.used.saturating_add(limit.held),
                limit: limit.limit,
            })
        };
        let (rpm, tpm) = (gauge(Dimension::Requests), gauge(Dimension::Tokens));
        ModelUsage { model: model.to_owned(), rpm, tpm }
    }
}

fn tokens(cost: &Cost) -> u64 {
    cost.amount(&Dimension::Tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::provider::OPENAI;

    #[test]
    fn time_left_is_forecast_minus_finished() {
        let limiter = Limiter::builder().build().expect("a limiter");
        let mut stats = RunStats::new(limiter, OPENAI, PriceList::default());
        assert_eq!(stats.snapshot().left_at_limits, None);
        let mut forecast = Forecast::default();
        (0..4).for_each(|second| forecast.add("m", Duration::from_secs(100 * second)));
        stats.set_forecast(forecast);
        assert_eq!(stats.snapshot().left_at_limits, Some(Duration::from_secs(300)));
        let facts = |granted_at| {
            let mut facts = Facts::default();
            (facts.key, facts.granted_at) = ("m".into(), granted_at);
            facts
        };
        stats.finished(&facts(Some(Timestamp::from_nanos(1))));
        stats.finished(&facts(Some(Timestamp::from_nanos(1))));
        assert_eq!(stats.snapshot().left_at_limits, Some(Duration::from_secs(200)));
        stats.finished(&facts(None));
        assert_eq!(stats.snapshot().left_at_limits, Some(Duration::from_secs(200)), "never sent");
    }
}
