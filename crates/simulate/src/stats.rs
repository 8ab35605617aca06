//! What the provider has counted.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::usage::SimulatedUsage;

/// Counts since the start, of all models and of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Of everything that was received.
    #[serde(flatten)]
    pub total: Counters,
    /// Of each model that was asked for, by its name.
    pub models: BTreeMap<String, Counters>,
}

/// Counts of requests and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Requests that arrived: those admitted, refused and failed.
    pub received: u64,
    /// Requests that the limits had room for.
    pub admitted: u64,
    /// Requests that a limit refused: the 429s.
    pub refused: u64,
    /// Requests that were malformed, or failed by a [`Fault`](super::Fault).
    pub failed: u64,
    /// Tokens taken from the token limit, by all admitted requests until the end of their answers.
    pub charged_tokens: u64,
    /// Tokens of prompts, as usage states them.
    pub input_tokens: u64,
    /// Tokens of answers, as usage states them.
    pub output_tokens: u64,
}

impl Counters {
    pub(super) fn admit(&mut self, charged: u64) {
        self.received += 1;
        self.admitted += 1;
        self.charged_tokens = self.charged_tokens.saturating_add(charged);
    }

    pub(super) fn refuse(&mut self) {
        self.received += 1;
        self.refused += 1;
    }

    pub(super) fn fail(&mut self) {
        self.received += 1;
        self.failed += 1;
    }

    /// Adds what is counted elsewhere.
    pub(super) fn join(&mut self, other: Self) {
        self.received += other.received;
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.failed += other.failed;
        self.charged_tokens = self.charged_tokens.saturating_add(other.charged_tokens);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }

    pub(super) fn add(&mut self, usage: SimulatedUsage) {
        self.input_tokens = self.input_tokens.saturating_add(usage.input);
        self.output_tokens = self.output_tokens.saturating_add(usage.output);
    }
}
