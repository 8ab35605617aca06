//! The counters of the provider.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::request_charge::RequestCharge;
use crate::usage::SimulatedUsage;

/// Counters since the start, in total and per model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The totals.
    #[serde(flatten)]
    pub total: Counters,
    /// The counters of each requested model, by name.
    pub models: BTreeMap<String, Counters>,
}

/// Counters of requests and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Requests received: admitted, refused and failed.
    pub received: u64,
    /// Requests admitted by the limits.
    pub admitted: u64,
    /// Requests refused by a limit with 429.
    pub refused: u64,
    /// Requests that were malformed, or failed by a [`Fault`](super::Fault).
    pub failed: u64,
    /// Tokens charged to the token limit by admitted requests, until the end of their responses.
    pub charged_tokens: u64,
    /// Cost of admitted requests in micro-dollars, if spending is limited.
    pub charged_micro_usd: u64,
    /// Input tokens, as reported in usage.
    pub input_tokens: u64,
    /// Output tokens, as reported in usage.
    pub output_tokens: u64,
}

impl Counters {
    pub(super) fn admit(&mut self, request_charge: &RequestCharge) {
        self.received += 1;
        self.admitted += 1;
        let RequestCharge { tokens, spend, .. } = request_charge;
        self.charged_tokens = self.charged_tokens.saturating_add(tokens.total());
        self.charged_micro_usd = self.charged_micro_usd.saturating_add(spend.total());
    }

    pub(super) fn refuse(&mut self) {
        self.received += 1;
        self.refused += 1;
    }

    pub(super) fn fail(&mut self) {
        self.received += 1;
        self.failed += 1;
    }

    /// Adds other counters.
    pub(super) fn join(&mut self, other: Self) {
        self.received += other.received;
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.failed += other.failed;
        self.charged_tokens = self.charged_tokens.saturating_add(other.charged_tokens);
        self.charged_micro_usd = self.charged_micro_usd.saturating_add(other.charged_micro_usd);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }

    pub(super) fn add(&mut self, usage: SimulatedUsage) {
        self.input_tokens = self.input_tokens.saturating_add(usage.input);
        self.output_tokens = self.output_tokens.saturating_add(usage.output);
    }
}
