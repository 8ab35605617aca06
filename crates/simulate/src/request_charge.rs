//! The amounts that a request takes from each limit, and when.

use super::exceeded_limit::LimitKind;

/// The charges of one request. The default is free, and passes all limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestCharge {
    pub(super) requests: LimitCharge,
    /// The charge to the limit on all tokens, as the format counts them.
    pub(super) tokens: LimitCharge,
    pub(super) input: LimitCharge,
    pub(super) output: LimitCharge,
    /// The cost in micro-dollars.
    pub(super) spend: LimitCharge,
}

/// The charge of a request to one limit. If nothing is required, the limit is not checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LimitCharge {
    /// The amount that must be available when the request arrives.
    pub(super) required: u64,
    /// The amount charged on arrival, which may be more or less.
    pub(super) taken: u64,
    /// The amount charged while the response is generated.
    pub(super) generated: u64,
}

impl RequestCharge {
    pub(super) fn limit_charge(&self, kind: LimitKind) -> LimitCharge {
        match kind {
            LimitKind::RequestsPerMinute | LimitKind::RequestsPerDay | LimitKind::Concurrency => {
                self.requests
            }
            LimitKind::TokensPerMinute => self.tokens,
            LimitKind::InputTokensPerMinute => self.input,
            LimitKind::OutputTokensPerMinute => self.output,
            LimitKind::Spend => self.spend,
        }
    }
}

impl LimitCharge {
    /// Charges the required amount on arrival.
    pub(super) fn on_arrival(amount: u64) -> Self {
        Self { required: amount, taken: amount, generated: 0 }
    }

    /// Returns the total charge.
    pub(super) fn total(&self) -> u64 {
        self.taken.saturating_add(self.generated)
    }
}
