//! Estimates of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};
use std::time::Duration;

use comfy_table::CellAlignment::{Left, Right};

use super::forecast::Forecast;
use super::ideal::Ideal;
use super::input::{InputLine, ParsedLine, Reader};
use super::target::Base;
use crate::terminal::{HumanDuration, counted, plain_table, printable, whole};
use paceline::limiter::{Code, Limiter};
use paceline::provider::{Profile, seam};
use paceline::quota::{Cost, Dimension, Quota};

/// The result of `--dry-run`: counts, estimated tokens and duration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The number of requests and their estimated charge, by model.
    pub models: BTreeMap<String, (u64, u64)>,
    /// The number of invalid lines.
    pub invalid_lines: u64,
    /// The number of requests above the limits, which can never be sent.
    pub never_fit: u64,
    /// The number of requests for models without known limits.
    pub unlimited: u64,
    /// The duration at the limits, with zero latency.
    pub duration: Duration,
    pub(super) forecast: Forecast,
}

impl Plan {
    /// Estimates the lines for which `is_left` returns true, within the limits of a limiter.
    pub(super) fn read<R: BufRead>(
        lines: Reader<R>,
        limiter: &Limiter,
        profile: Profile,
        base: &Base,
        is_left: impl Fn(&InputLine) -> bool,
    ) -> io::Result<Self> {
        let (mut plan, mut ideal) = (Self::default(), Ideal::new(profile));
        for parsed in lines {
            let ParsedLine::Request(line) = parsed? else {
                plan.invalid_lines += 1;
                continue;
            };
            if !is_left(&line) {
                continue;
            }
            let estimate = profile.read_request(&base.join(&line.url_path), &line.body);
            let model = estimate.key().unwrap_or_default();
            let (model, cost) = (seam::key_of_model(&profile, limiter, model), estimate.cost);
            let code = limiter.decide(&model, &cost).code;
            if matches!(code, Code::ExceedsCapacity | Code::TotalExceeded) {
                plan.never_fit += 1;
                continue;
            }
            let quota = limiter.quotas().of(&model);
            plan.unlimited += u64::from(!limits_a_rate(&quota));
            plan.add(&model, &cost);
            if let Some(at) = ideal.send(&model, || quota, &cost, &cost) {
                plan.forecast.add(&model, at);
            }
        }
        plan.duration = plan.forecast.left(|_| 0);
        Ok(plan)
    }

    fn add(&mut self, model: &str, cost: &Cost) {
        let (requests, tokens) = self.models.entry(model.to_owned()).or_default();
        *requests += 1;
        *tokens += cost.amount(&Dimension::Tokens);
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["model", "requests", "tokens"].map(str::to_owned);
        let models = self.models.iter().map(|(model, (requests, tokens))| {
            let model = if model.is_empty() { "-".to_owned() } else { printable(model) };
            [model, whole(*requests), whole(*tokens)]
        });
        let table = plain_table([Left, Right, Right], std::iter::once(header).chain(models));
        writeln!(f, "{}", table.trim_fmt())?;
        if self.invalid_lines > 0 {
            writeln!(f, "{}", counted(self.invalid_lines, "invalid line"))?;
        }
        if self.never_fit > 0 {
            let requests = counted(self.never_fit, "request");
            writeln!(f, "{requests} above the limits, which can never be sent")?;
        }
        if self.unlimited > 0 {
            let requests = counted(self.unlimited, "request");
            writeln!(f, "{requests} for models without known limits")?;
        }
        write!(f, "about {} at these limits", HumanDuration::of(self.duration))
    }
}

fn limits_a_rate(quota: &Quota) -> bool {
    quota.limits().iter().any(|limit| *limit.dimension() != Dimension::Concurrency)
}
