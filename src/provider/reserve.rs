//! What is reserved for a request, by the ways in which providers charge.

use super::Terms;
use super::estimate::{Guess, UNBOUNDED_OUTPUT, in_full};
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
            cost: cost((tokens, 0), input, output(request)),
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
        let guess = request.endpoint.generates().then_some(Guess { input: Some(input) });
        let cost = cost(in_full(input, output, floor), input, output);
        Self { cost, terms: Terms::at_least(floor), guess }
    }

    /// The provider takes all that may be generated when it admits the request, and in the end what
    /// was. Where the request doesn't say how much that is, `unbounded` is a guess.
    pub(super) fn at_most(request: &Request, input: u64, unbounded: u64) -> Self {
        let generates = request.endpoint.generates();
        let output = if generates { request.output(unbounded) } else { 0 };
        let (tokens, guessed) = in_full(input, output, 0);
        let guessed = if request.max_output().is_some() { 0 } else { guessed };
        Self { cost: cost((tokens, guessed), input, output), terms: Terms::default(), guess: None }
    }

    /// The provider's token limit counts the input alone.
    pub(super) fn by_input(request: &Request, input: u64) -> Self {
        let guess = request.endpoint.generates().then_some(Guess { input: None });
        Self { cost: cost((input, 0), input, output(request)), terms: Terms::default(), guess }
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

/// The output is always a guess: how much it will be, nobody knows before the end.
fn cost((tokens, guessed): (u64, u64), input: u64, output: u64) -> Cost {
    let cost = Cost::new().tokens(tokens).input_tokens(input).output_tokens(output);
    cost.guessed_tokens(guessed).guessed_output_tokens(output)
}

fn output(request: &Request) -> u64 {
    if request.endpoint.generates() { request.output(UNBOUNDED_OUTPUT) } else { 0 }
}
