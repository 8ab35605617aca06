use paceline_limiter::quota::{Usage, Usd};

use super::rates::Rates;

/// The price of a model's tokens.
///
/// ```
/// use paceline_provider::price::Price;
/// use paceline_limiter::quota::{Usage, Usd};
/// // $3 per million input tokens, $15 per million output tokens, $0.30 per million cached tokens.
/// let price = Price::per_million(Usd::from_dollars(3), Usd::from_dollars(15));
/// let price = price.cache_read(Usd::from_micros(300_000));
/// let usage = Usage { input: 10_000, output: 2_000, cache_read: 9_000, ..Usage::default() };
/// assert_eq!(price.cost(&usage), 3_000 + 2_700 + 30_000);
/// assert_eq!(price.most(10_000, 4_096), 30_000 + 61_440);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    pub(super) rates: Rates,
    /// The rates of prompts above a number of tokens, by that number, ascending.
    pub(super) long_prompts: Vec<(u64, Rates)>,
    /// The rate of an input token in a request with audio.
    pub(super) audio_input: Option<u64>,
    /// The length of the model's context, in tokens.
    pub(super) max_input: Option<u64>,
    /// The largest output of a request that doesn't bound it, in tokens.
    pub(super) max_output: Option<u64>,
}

impl Price {
    /// Creates a price per million input tokens and per million output tokens. Tokens that are read from a cache
    /// or written to it cost as much as other input tokens.
    pub fn per_million(input: Usd, output: Usd) -> Self {
        Self {
            rates: Rates::uniform(input.as_micros(), output.as_micros()),
            long_prompts: Vec::new(),
            audio_input: None,
            max_input: None,
            max_output: None,
        }
    }

    /// Sets the largest output that the model generates for a request without `max_tokens`, in tokens. Without it,
    /// such a request has no price, unless the built-in table states the model's largest output.
    #[must_use]
    pub fn max_output(mut self, tokens: u64) -> Self {
        self.max_output = Some(tokens);
        self
    }

    /// Sets the length of the model's context in tokens: the largest input of a request that refers to content
    /// outside its body, such as an earlier response or a file.
    #[must_use]
    pub fn max_input(mut self, tokens: u64) -> Self {
        self.max_input = Some(tokens);
        self
    }

    /// Sets the price per million tokens that are read from a cache.
    #[must_use]
    pub fn cache_read(mut self, rate: Usd) -> Self {
        self.rates.cache_read = rate.as_micros();
        self
    }

    /// Sets the price per million tokens that are written to a cache.
    #[must_use]
    pub fn cache_write(mut self, rate: Usd) -> Self {
        let rate = rate.as_micros();
        (self.rates.cache_write, self.rates.long_cache_write) = (rate, rate);
        self
    }

    /// Returns the cost of a usage in micro-dollars, rounded up.
    pub fn cost(&self, usage: &Usage) -> u64 {
        self.rates_of(usage.input).cost(usage)
    }

    /// Returns the most that a request with at most this many input and output tokens can cost, in
    /// micro-dollars, rounded up.
    pub fn most(&self, input: u64, output: u64) -> u64 {
        let long = self.long_prompts.iter().filter(|(tokens, _)| input > *tokens);
        let costs = long.map(|(_, rates)| rates.most(input, output));
        costs.fold(self.rates.most(input, output), u64::max)
    }

    /// Returns the price of a request with audio in its prompt, all of whose input tokens cost as much as those
    /// of audio if these cost more.
    #[must_use]
    pub fn with_audio(&self) -> Self {
        let Some(audio) = self.audio_input else { return self.clone() };
        let dearer = |rates: &Rates| {
            let Rates { input, cache_read, cache_write, long_cache_write, .. } = *rates;
            let [input, cache_read, cache_write, long_cache_write] =
                [input, cache_read, cache_write, long_cache_write].map(|rate| rate.max(audio));
            Rates { input, cache_read, cache_write, long_cache_write, ..*rates }
        };
        Self { audio_input: None, ..self.map(dearer) }
    }

    /// Returns a price at which each token costs as much as at the dearer one of two prices.
    #[must_use]
    pub fn or_dearer(&self, other: &Self) -> Self {
        let mut thresholds: Vec<u64> = self
            .long_prompts
            .iter()
            .chain(&other.long_prompts)
            .map(|(tokens, _)| *tokens)
            .collect();
        thresholds.sort_unstable();
        thresholds.dedup();
        let above = |tokens: u64| {
            let input = tokens.saturating_add(1);
            (tokens, self.rates_of(input).or_dearer(other.rates_of(input)))
        };
        let larger = |(one, other): (Option<u64>, Option<u64>)| Some(one?.max(other?));
        Self {
            rates: self.rates.or_dearer(&other.rates),
            long_prompts: thresholds.into_iter().map(above).collect(),
            audio_input: self.audio_input.max(other.audio_input),
            max_input: larger((self.max_input, other.max_input)),
            max_output: larger((self.max_output, other.max_output)),
        }
    }

    /// Returns the rates of a prompt of this many tokens.
    fn rates_of(&self, input: u64) -> &Rates {
        let long = self.long_prompts.iter().rev().find(|(tokens, _)| input > *tokens);
        long.map_or(&self.rates, |(_, rates)| rates)
    }

    /// Returns the price of a mode that is dearer by this factor.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "rates are far below 2^52"
    )]
    pub(super) fn times(&self, factor: f64) -> Self {
        let times = |rate: u64| (rate as f64 * factor).round() as u64;
        let price = self.map(|rates| Rates {
            input: times(rates.input),
            output: times(rates.output),
            cache_read: times(rates.cache_read),
            cache_write: times(rates.cache_write),
            long_cache_write: times(rates.long_cache_write),
        });
        Self { audio_input: self.audio_input.map(times), ..price }
    }

    fn map(&self, change: impl Fn(&Rates) -> Rates) -> Self {
        let long_prompts = self.long_prompts.iter().map(|(tokens, rates)| (*tokens, change(rates)));
        Self { rates: change(&self.rates), long_prompts: long_prompts.collect(), ..*self }
    }

    /// Returns the price with the bounds of another one where it has none.
    pub(super) fn bounded_by(mut self, other: &Self) -> Self {
        self.max_input = self.max_input.or(other.max_input);
        self.max_output = self.max_output.or(other.max_output);
        self
    }

    /// Returns the length of the model's context and its largest output, in tokens.
    pub(crate) fn bounds(&self) -> (Option<u64>, Option<u64>) {
        (self.max_input, self.max_output)
    }
}
