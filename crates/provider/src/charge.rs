use paceline_limiter::quota::{Cost, Dimension, SettleAt, Usage};
use wildmatch::WildMatch;

use crate::Terms;
use crate::admission::AdmissionCharge;
use crate::cached_prompt::{CacheReads, CachedPrompt};
use crate::estimate::{Guess, TotalTokens, UNBOUNDED_OUTPUT};
use crate::prompt_weights::PromptWeights;
use crate::request::Request;

/// The rule by which a provider charges tokens, when it admits a request and when the response ends.
///
/// `Tokens` is the total-token limit (TPM). `InputTokens` and `OutputTokens` are always charged by the
/// usage that the response states.
///
/// | provider | charge |
/// |---|---|
/// | OpenAI, Azure, Groq | [`at_admission`](Self::at_admission) |
/// | Anthropic | `by_usage().without_cache_reads().settling_input_early()` |
/// | Gemini | [`by_input`](Self::by_input) |
/// | Mistral, Cohere, vLLM | [`by_usage`](Self::by_usage) |
/// | Cerebras | `by_usage().reserving_max_output().context(8_192)` |
/// | Bedrock's mantle endpoint | `by_usage().reserving_max_output().without_cache_reads().output_in_input()` |
/// | Moonshot | [`by_prompt_and_bound`](Self::by_prompt_and_bound) |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    counted: Counted,
    cache_reads: CacheReads,
    reserves_max_output: bool,
    /// The length of the context in tokens; `None` if it is unknown.
    context: Option<u64>,
    settles_input_early: bool,
    output_in_input: bool,
    output_factors: &'static [(&'static str, u64)],
    default_bounds: &'static [(&'static str, u64)],
}

/// The tokens that the total-token limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// A number that is fixed at admission.
    Admission(AdmissionCharge),
    /// Input and output, and at least the admission charge.
    Usage(Option<AdmissionCharge>),
    Input,
    /// The input that the response states, and the bound of the output.
    PromptAndBound,
}

/// The reservation for a request, before it is sent.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) cost: Cost,
    pub(super) terms: Terms,
    pub(super) guess: Option<Guess>,
}

impl Charge {
    /// Charges a number of tokens that is fixed when the request is admitted. Usage has no effect.
    pub const fn at_admission(charge: AdmissionCharge) -> Self {
        Self::counting(Counted::Admission(charge))
    }

    /// Charges input and output tokens as the response states them.
    ///
    /// Until then the estimated prompt and `max_tokens` are reserved, or 1,024 tokens per choice if
    /// the request sets no bound.
    pub const fn by_usage() -> Self {
        Self::counting(Counted::Usage(None))
    }

    /// Charges input and output tokens as [`by_usage`](Self::by_usage), but at least what the
    /// provider may have taken at admission.
    pub const fn by_usage_at_least(floor: AdmissionCharge) -> Self {
        Self::counting(Counted::Usage(Some(floor)))
    }

    /// Charges the input tokens alone, as the response states them.
    pub const fn by_input() -> Self {
        Self::counting(Counted::Input)
    }

    /// Charges the input tokens as the response states them, and `max_tokens`, however many tokens are
    /// generated. [`default_bounds`](Self::default_bounds) sets the charge for a request without a bound.
    pub const fn by_prompt_and_bound() -> Self {
        Self::counting(Counted::PromptAndBound)
    }

    /// Doesn't charge tokens that were read from a cache.
    #[must_use]
    pub const fn without_cache_reads(self) -> Self {
        Self { cache_reads: CacheReads::Free, ..self }
    }

    /// Doesn't charge tokens that were read from a cache to `Tokens`, but charges all input to
    /// `InputTokens`.
    #[must_use]
    pub const fn without_cache_reads_in_total(self) -> Self {
        Self { cache_reads: CacheReads::FreeOfTotal, ..self }
    }

    /// Returns the terms of prompts that may be read from a cache.
    pub(super) fn cached_prompt(&self, marks_cache: impl FnOnce() -> bool) -> CachedPrompt {
        CachedPrompt::new(self.cache_reads, marks_cache)
    }

    /// Reserves `max_tokens` in full until the response ends, as the provider does. Without this
    /// option, the usual output of the model is reserved once it is known.
    #[must_use]
    pub const fn reserving_max_output(self) -> Self {
        Self { reserves_max_output: true, ..self }
    }

    /// Reserves up to this many tokens, prompt included, for a request that sets no `max_tokens`,
    /// where [`reserving_max_output`](Self::reserving_max_output) applies.
    #[must_use]
    pub const fn context(self, tokens: u64) -> Self {
        Self { context: Some(tokens), ..self }
    }

    /// Settles `InputTokens` at the first usage that a stream states, not at its end.
    #[must_use]
    pub const fn settling_input_early(self) -> Self {
        Self { settles_input_early: true, ..self }
    }

    /// Sets how many tokens of `Tokens` one output token costs, by model: the first glob that matches
    /// counts, and a model that matches none has a factor of 1.
    #[must_use]
    pub const fn output_factors(self, factors: &'static [(&'static str, u64)]) -> Self {
        Self { output_factors: factors, ..self }
    }

    /// Charges the output to `InputTokens` too. The bound of the output is also reserved there; without a
    /// bound, the output is charged there at the end.
    #[must_use]
    pub const fn output_in_input(self) -> Self {
        Self { output_in_input: true, ..self }
    }

    /// Sets the bound that the provider assumes for one choice of a request that states none, by model: the
    /// first glob that matches counts. Other models are reserved 1,024 tokens per choice.
    #[must_use]
    pub const fn default_bounds(self, bounds: &'static [(&'static str, u64)]) -> Self {
        Self { default_bounds: bounds, ..self }
    }

    const fn counting(counted: Counted) -> Self {
        Self {
            counted,
            cache_reads: CacheReads::Charged,
            reserves_max_output: false,
            context: None,
            settles_input_early: false,
            output_in_input: false,
            output_factors: &[],
            default_bounds: &[],
        }
    }

    /// Returns when the charge in a dimension becomes final.
    pub(super) fn settles(&self, dimension: &Dimension) -> SettleAt {
        match (dimension, self.counted) {
            (dimension, _) if dimension.is_usd() => SettleAt::End,
            (_, Counted::Admission(_)) => SettleAt::Send,
            (Dimension::InputTokens, _) if self.settles_input_early => SettleAt::FirstUsage,
            (Dimension::Tokens | Dimension::InputTokens | Dimension::OutputTokens, _) => {
                SettleAt::End
            }
            _ => SettleAt::Send,
        }
    }

    /// Returns the charge for a usage.
    pub(super) fn of_usage(&self, reserved: &Cost, usage: &Usage) -> Cost {
        let uncached = usage.input.saturating_sub(usage.cache_read);
        let (counted, input) = match self.cache_reads {
            CacheReads::Charged => (usage.input, usage.input),
            CacheReads::FreeOfTotal => (uncached, usage.input),
            CacheReads::Free => (uncached, uncached),
        };
        let output_in_input = if self.output_in_input { usage.output } else { 0 };
        let charged_input = input.saturating_add(output_in_input);
        let cost = reserved.clone().input_tokens(charged_input).output_tokens(usage.output);
        match self.counted {
            Counted::Admission(_) => cost,
            Counted::Usage(_) => cost.tokens(counted.saturating_add(usage.output)),
            Counted::Input => cost.tokens(counted),
            Counted::PromptAndBound => {
                let amount = |dimension| reserved.amount(&dimension);
                let bound =
                    amount(Dimension::Tokens).saturating_sub(amount(Dimension::InputTokens));
                cost.tokens(counted.saturating_add(bound))
            }
        }
    }

    /// Returns the reservation for a request.
    pub(super) fn reserve(&self, request: &Request, weights: &PromptWeights) -> Reserved {
        let input = request.prompt_tokens(weights);
        let reserved = match self.counted {
            Counted::Admission(charge) => at_admission(request, input, charge.of(request, weights)),
            Counted::Input => by_input(request, input),
            Counted::PromptAndBound => self.prompt_and_bound(request, input),
            Counted::Usage(floor) => match self.max_output(request, input) {
                Some(output) => at_most(request, input, output),
                None => at_least(request, input, floor.map_or(0, |f| f.of(request, weights))),
            },
        };
        let is_bound_in_input = self.output_in_input && reserved.guess.is_none();
        let reserved = if is_bound_in_input { reserved.with_output_in_input() } else { reserved };
        let burn_down = of_model(self.output_factors, request).unwrap_or(1);
        Reserved { terms: Terms { burn_down, ..reserved.terms }, ..reserved }
    }

    fn prompt_and_bound(&self, request: &Request, input: u64) -> Reserved {
        let default = of_model(self.default_bounds, request);
        let is_known = request.max_output().is_some() || default.is_some();
        let default = default.unwrap_or(UNBOUNDED_OUTPUT);
        let bound = if request.endpoint.generates() { request.output(default) } else { 0 };
        let total = TotalTokens::new(input, bound, 0);
        let total = if is_known { TotalTokens::known(total.tokens) } else { total };
        let cost = cost(total, input, guessed_output(request));
        Reserved { cost, terms: Terms::default(), guess: None }
    }

    /// Returns the output that is reserved in full, in tokens; `None` if it is a guess.
    fn max_output(&self, request: &Request, input: u64) -> Option<u64> {
        let unbounded = self.context.map(|context| context.saturating_sub(input));
        let is_known = request.max_output().is_some() || unbounded.is_some();
        if !self.reserves_max_output || !is_known {
            return None;
        }
        let generates = request.endpoint.generates();
        Some(if generates { request.output(unbounded.unwrap_or(0)) } else { 0 })
    }
}

impl Reserved {
    /// Returns the reservation with the output reserved as input tokens too.
    fn with_output_in_input(self) -> Self {
        let [input, output] = [Dimension::InputTokens, Dimension::OutputTokens]
            .map(|dimension| self.cost.amount(&dimension));
        Self { cost: self.cost.input_tokens(input.saturating_add(output)), ..self }
    }
}

/// Returns the number of the first glob that matches the model of a request.
fn of_model(numbers: &[(&str, u64)], request: &Request) -> Option<u64> {
    let model = request.model.as_deref()?;
    let matches = |pattern: &str| WildMatch::new(pattern).matches(model);
    numbers.iter().find(|(pattern, _)| matches(pattern)).map(|(_, number)| *number)
}

fn at_admission(request: &Request, input: u64, tokens: u64) -> Reserved {
    Reserved {
        cost: cost(TotalTokens::known(tokens), input, guessed_output(request)),
        terms: Terms::at_least(tokens),
        guess: None,
    }
}

fn at_least(request: &Request, input: u64, floor: u64) -> Reserved {
    let output = guessed_output(request);
    let guess = request.endpoint.generates().then_some(Guess { input: Some(input) });
    let cost = cost(TotalTokens::new(input, output, floor), input, output);
    Reserved { cost, terms: Terms::at_least(floor), guess }
}

fn at_most(request: &Request, input: u64, output: u64) -> Reserved {
    let total = TotalTokens::new(input, output, 0);
    let total =
        if request.max_output().is_some() { TotalTokens::known(total.tokens) } else { total };
    Reserved { cost: cost(total, input, output), terms: Terms::default(), guess: None }
}

fn by_input(request: &Request, input: u64) -> Reserved {
    let guess = request.endpoint.generates().then_some(Guess { input: None });
    Reserved {
        cost: cost(TotalTokens::known(input), input, guessed_output(request)),
        terms: Terms::default(),
        guess,
    }
}

/// Returns the cost to reserve. The output is always marked as guessed, since the actual one is unknown
/// until the end.
fn cost(total: TotalTokens, input: u64, output: u64) -> Cost {
    let cost = Cost::new().tokens(total.tokens).input_tokens(input).output_tokens(output);
    cost.guessed_tokens(total.guessed).guessed_output_tokens(output)
}

fn guessed_output(request: &Request) -> u64 {
    if request.endpoint.generates() { request.output(UNBOUNDED_OUTPUT) } else { 0 }
}
