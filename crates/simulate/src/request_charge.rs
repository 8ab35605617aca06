//! What a request takes from each limit, and when.

use super::refusal::LimitKind;

/// All that one request takes. The default is free: it passes whatever the limits are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestCharge {
    pub(super) requests: LimitCharge,
    /// From the limit of all tokens, whatever a format counts as such.
    pub(super) tokens: LimitCharge,
    pub(super) input: LimitCharge,
    pub(super) output: LimitCharge,
}

/// What a request takes from one limit. Where it needs no room, the limit is not asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LimitCharge {
    /// What there must be room for when it is received.
    pub(super) required: u64,
    /// What it takes then, which may be more or less.
    pub(super) taken: u64,
    /// What it takes until the end of its answer, as that is made.
    pub(super) generated: u64,
}

impl RequestCharge {
    pub(super) fn limit_charge(&self, kind: LimitKind) -> LimitCharge {
        match kind {
            LimitKind::RequestsPerMinute | LimitKind::RequestsPerDay => self.requests,
            LimitKind::TokensPerMinute => self.tokens,
            LimitKind::InputTokensPerMinute => self.input,
            LimitKind::OutputTokensPerMinute => self.output,
        }
    }
}

impl LimitCharge {
    /// Takes what there must be room for.
    pub(super) fn on_arrival(amount: u64) -> Self {
        Self { required: amount, taken: amount, generated: 0 }
    }

    /// All that is taken, from first to last.
    pub(super) fn total(&self) -> u64 {
        self.taken.saturating_add(self.generated)
    }
}
