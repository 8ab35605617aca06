//! What is reserved for a request, by the ways in which providers charge.

use super::Terms;
use super::estimate::{Guess, UNBOUNDED_OUTPUT};
use super::request::Request;
use crate::quota::{Cost, Dimension, SettleAt, Usage};

/// What a request is charged before it is answered.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) cost: Cost,
    pub(super) terms: Terms,
    pub(super) guess: Option<Guess>,
}

impl Reserved {
    /// The provider takes `tokens` when it admits the request; what it uses plays no part.
    pub(super) fn at_admission(request: &Request, input: u64, tokens: u64) -> Self {
        Self {
            cost: cost(tokens, input, output(request)),
            terms: Terms::at_least(tokens),
            guess: None,
        }
    }

    /// The provider takes input and output as they are.
    pub(super) fn by_usage(request: &Request, input: u64) -> Self {
        Self::at_least(request, input, 0)
    }

    /// The provider takes input and output as they are, but `floor` at least.
    pub(super) fn at_least(request: &Request, input: u64, floor: u64) -> Self {
        let output = output(request);
        let tokens = input.saturating_add(output).max(floor);
        let guess = request.endpoint.generates().then_some(Guess { input: Some(input) });
        Self { cost: cost(tokens, input, output), terms: Terms::at_least(floor), guess }
    }

    /// The provider takes all that may be generated when it admits the request, `unbounded` tokens
    /// where that is not said, and in the end what was.
    pub(super) fn at_most(request: &Request, input: u64, unbounded: u64) -> Self {
        let generates = request.endpoint.generates();
        let output = if generates { request.output(unbounded) } else { 0 };
        let tokens = input.saturating_add(output);
        Self { cost: cost(tokens, input, output), terms: Terms::default(), guess: None }
    }

    /// The provider's token limit counts the input alone.
    pub(super) fn by_input(request: &Request, input: u64) -> Self {
        let guess = request.endpoint.generates().then_some(Guess { input: None });
        Self { cost: cost(input, input, output(request)), terms: Terms::default(), guess }
    }
}

/// The charge where `Tokens` are input and output together.
pub(super) fn usage_in_full(reserved: &Cost, usage: &Usage) -> Cost {
    used(reserved, usage).tokens(usage.total())
}

/// The charge where `Tokens` were taken at admission.
pub(super) fn usage_apart(reserved: &Cost, usage: &Usage) -> Cost {
    used(reserved, usage)
}

/// The charge where `Tokens` are the input alone.
pub(super) fn usage_of_input(reserved: &Cost, usage: &Usage) -> Cost {
    used(reserved, usage).tokens(usage.input)
}

/// Nothing is left open when the request is sent.
pub(super) fn at_send(_: &Dimension) -> SettleAt {
    SettleAt::Send
}

/// Tokens of all kinds are counted when the response has ended.
pub(super) fn at_end(dimension: &Dimension) -> SettleAt {
    match dimension {
        Dimension::Tokens | Dimension::InputTokens | Dimension::OutputTokens => SettleAt::End,
        _ => SettleAt::Send,
    }
}

pub(super) fn used(reserved: &Cost, usage: &Usage) -> Cost {
    reserved.clone().input_tokens(usage.input).output_tokens(usage.output)
}

fn cost(tokens: u64, input: u64, output: u64) -> Cost {
    Cost::new().tokens(tokens).input_tokens(input).output_tokens(output)
}

fn output(request: &Request) -> u64 {
    if request.endpoint.generates() { request.output(UNBOUNDED_OUTPUT) } else { 0 }
}
