use std::fmt;

use serde::Serialize;

use super::Explanation;
use super::seconds::seconds;
use super::table_row::printable;
use crate::terminal::rfc3339;
use paceline::provider::{LimitReading, Refusal};
use paceline::quota::{Dimension, Usage};

/// An explanation as one line of JSON, without a newline. The names and the order of its members
/// are stable.
#[derive(Debug, Clone, Serialize)]
pub struct JsonLine<'a> {
    file: &'a str,
    index: usize,
    provider: &'static str,
    model: Option<&'a str>,
    charge: ChargeFields,
    usage: Option<UsageFields>,
    limits: Vec<LimitFields<'a>>,
    class: &'static str,
    retry_after_s: Option<f64>,
    status: Option<u16>,
    error: Option<String>,
    time: Option<String>,
    refusal: Option<RefusalFields<'a>>,
}

impl<'a> JsonLine<'a> {
    /// Returns the line for the entry at `index` (from 0) of `file`.
    pub fn new(file: &'a str, index: usize, explanation: &'a Explanation) -> Self {
        Self {
            file,
            index,
            provider: explanation.profile.name(),
            model: explanation.estimate.model.as_deref(),
            charge: ChargeFields::of(explanation),
            usage: explanation.usage.map(UsageFields::from),
            limits: explanation.limits.iter().map(LimitFields::from).collect(),
            class: explanation.class_name(),
            retry_after_s: explanation.retry_after.as_ref().map(seconds),
            status: explanation.status,
            // The message may quote the prompt; the code doesn't.
            error: explanation
                .error
                .as_ref()
                .and_then(|error| error.code().or(error.kind()).map(printable)),
            time: explanation.ended_at.map(rfc3339),
            refusal: explanation.refusal.as_ref().map(RefusalFields::from),
        }
    }
}

impl fmt::Display for JsonLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[derive(Debug, Clone, Serialize)]
struct ChargeFields {
    requests: u64,
    tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
}

impl ChargeFields {
    fn of(explanation: &Explanation) -> Self {
        let amount = |dimension| explanation.estimate.cost.amount(&dimension);
        Self {
            requests: amount(Dimension::Requests),
            tokens: amount(Dimension::Tokens),
            input_tokens: amount(Dimension::InputTokens),
            output_tokens: amount(Dimension::OutputTokens),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct UsageFields {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl From<Usage> for UsageFields {
    fn from(usage: Usage) -> Self {
        let Usage { input, output, cache_read, cache_write, .. } = usage;
        Self { input, output, cache_read, cache_write }
    }
}

/// What a refusal says, without the provider's words, which may quote the prompt.
#[derive(Debug, Clone, Serialize)]
struct RefusalFields<'a> {
    kind: &'static str,
    delay_s: Option<f64>,
    until: Option<String>,
    dimension: Option<&'a str>,
    limit: Option<u64>,
    requested: Option<u64>,
}

impl<'a> From<&'a Refusal> for RefusalFields<'a> {
    fn from(refusal: &'a Refusal) -> Self {
        Self {
            kind: refusal.kind.as_str(),
            delay_s: refusal.delay.as_ref().map(seconds),
            until: refusal.until.map(rfc3339),
            dimension: refusal.dimension.as_ref().map(Dimension::as_str),
            limit: refusal.limit,
            requested: refusal.requested,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct LimitFields<'a> {
    dimension: &'a str,
    limit: Option<u64>,
    remaining: Option<u64>,
    reset_s: Option<f64>,
    window_s: Option<f64>,
}

impl<'a> From<&'a LimitReading> for LimitFields<'a> {
    fn from(reading: &'a LimitReading) -> Self {
        Self {
            dimension: reading.dimension.as_str(),
            limit: reading.limit,
            remaining: reading.remaining,
            reset_s: reading.reset.as_ref().map(seconds),
            window_s: (reading.dimension != Dimension::Concurrency)
                .then(|| reading.window.as_duration().as_secs_f64()),
        }
    }
}
