//! What a request takes from each limit, and when.

use super::refusal::LimitKind;

/// All that one request takes. The default is free: it passes whatever the limits are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bill {
    pub(super) requests: Claim,
    /// From the limit of all tokens, whatever a format counts as such.
    pub(super) tokens: Claim,
    pub(super) input: Claim,
    pub(super) output: Claim,
}

/// What a request takes from one limit. Where it needs no room, the limit is not asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Claim {
    /// What there must be room for when it is received.
    pub(super) room: u64,
    /// What it takes then, which may be more or less.
    pub(super) taken: u64,
    /// What it takes until the end of its answer, as that is made.
    pub(super) made: u64,
}

impl Bill {
    pub(super) fn claim(&self, kind: LimitKind) -> Claim {
        match kind {
            LimitKind::RequestsPerMinute | LimitKind::RequestsPerDay => self.requests,
            LimitKind::TokensPerMinute => self.tokens,
            LimitKind::InputTokensPerMinute => self.input,
            LimitKind::OutputTokensPerMinute => self.output,
        }
    }
}

impl Claim {
    /// Takes what there must be room for.
    pub(super) fn at_once(amount: u64) -> Self {
        Self { room: amount, taken: amount, made: 0 }
    }

    /// All that is taken, from first to last.
    pub(super) fn total(&self) -> u64 {
        self.taken.saturating_add(self.made)
    }
}
