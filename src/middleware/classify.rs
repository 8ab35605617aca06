use http::Extensions;

use super::ask::Ask;
use super::journey::Journey;
use super::record::Call;
use super::scope_key::{ScopeKey, ScopeKeys};
use crate::limiter::Limiter;
use crate::provider::{Estimate, OutputGuess, Terms};
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// What a request is, to the limiter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Classified {
    pub(super) keys: ScopeKeys,
    pub(super) cost: Cost,
    /// How what the response uses is charged.
    pub terms: Terms,
    /// When to give up, if the layer would not sooner.
    pub deadline: Option<Timestamp>,
    /// Where to write down how it went.
    pub journey: Option<Journey>,
    /// Of a request to a provider.
    pub(super) call: Option<Call>,
    ask: Option<Box<Ask>>,
    /// The output in the cost, where it is a guess that experience should replace.
    pub(super) guess: Option<OutputGuess>,
}

impl Classified {
    /// A request of this key and cost.
    pub fn new(key: impl Into<ScopeKey>, cost: Cost) -> Self {
        let mut keys = ScopeKeys::new();
        keys.push(key.into());
        Self {
            keys,
            cost,
            terms: Terms::default(),
            deadline: None,
            journey: None,
            call: None,
            ask: None,
            guess: None,
        }
    }

    /// A request of this key that a provider would take so.
    pub(super) fn estimated(key: impl Into<ScopeKey>, estimate: Estimate) -> Self {
        let (terms, guess) = (estimate.terms, estimate.output_guess());
        Self { terms, guess, ..Self::new(key, estimate.cost) }
    }

    /// It is a call of this kind.
    pub(super) fn calling(self, call: Call) -> Self {
        Self { call: Some(call), ..self }
    }

    /// Reserves as much output as its key is known for.
    pub(super) fn learned_from(&mut self, limiter: &Limiter) {
        let (Some(guess), Some(key)) = (self.guess, self.keys.first()) else { return };
        if let Some(tokens) = limiter.feedback().expected_output(key.as_str()) {
            self.cost = guess.apply(std::mem::take(&mut self.cost), tokens);
        }
    }

    /// What to reserve for it, under each key.
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Reserves this instead, whatever its key is known for.
    ///
    /// ```
    /// # use tollgate::{limiter::Limiter, provider::OPENAI};
    /// use tollgate::middleware::{Classify, Http, RateLimitLayer};
    /// use tollgate::quota::Cost;
    /// # let limiter = Limiter::builder().provider(OPENAI).build()?;
    /// let http = Http::new(OPENAI);
    /// let layer = RateLimitLayer::new(limiter).classify(move |request: &http::Request<String>| {
    ///     http.classify(request, None).with_cost(Cost::new().tokens(1_200))
    /// });
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    #[must_use]
    pub fn with_cost(mut self, cost: Cost) -> Self {
        self.set_cost(cost);
        self
    }

    fn set_cost(&mut self, cost: Cost) {
        self.terms.floor = self.terms.floor.min(cost.amount(&Dimension::Tokens));
        self.cost = cost;
        self.guess = None;
    }

    /// Falls under this key too.
    #[must_use]
    pub fn scope(mut self, key: impl Into<ScopeKey>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Falls under these keys instead, of which the first is its own; under the same as before if there
    /// are none.
    #[must_use]
    pub fn with_keys(mut self, keys: impl IntoIterator<Item = ScopeKey>) -> Self {
        let mut keys = keys.into_iter();
        if let Some(own) = keys.next() {
            self.own_key(own);
            self.keys.truncate(1);
            self.keys.extend(keys);
        }
        self
    }

    /// The keys whose quotas it falls under, all at once: its own, and then its other scopes.
    pub fn keys(&self) -> &[ScopeKey] {
        &self.keys
    }

    /// What the extensions of an HTTP request add: an [`Ask`], which wins, and a [`Journey`].
    #[must_use]
    pub fn with_extensions(mut self, extensions: &Extensions) -> Self {
        self.read_extensions(extensions);
        self
    }

    pub(super) fn read_extensions(&mut self, extensions: &Extensions) {
        if let Some(ask) = extensions.get::<Ask>() {
            self.ask = Some(Box::new(ask.clone()));
        }
        if let Some(journey) = extensions.get::<Journey>() {
            self.journey = Some(journey.clone());
        }
    }

    /// Grants what it asks for; says when to give up, if it asked for that.
    pub(super) fn granted(&mut self) -> Option<Timestamp> {
        let ask = *self.ask.take()?;
        if let Some(key) = ask.key {
            self.own_key(key);
        }
        if let Some(cost) = ask.cost {
            self.set_cost(cost);
        }
        ask.deadline
    }

    /// Its own key is this one.
    pub(super) fn own_key(&mut self, key: ScopeKey) {
        let Some(first) = self.keys.first_mut() else { return self.keys.push(key) };
        let named = std::mem::replace(first, key);
        if let Some(Call { model: model @ None, .. }) = &mut self.call {
            *model = Some(named.into_text());
        }
    }
}

/// Says what a request is. Closures do: `|request: &R| Classified::new("key", Cost::new())`.
#[diagnostic::on_unimplemented(
    message = "the rate-limit layer doesn't know what a `{Request}` costs",
    note = "a request's body must be in memory (`PeekBody`): put a `BufferBodyLayer` around the layer",
    note = "an axum router takes the layer's server mode: `RateLimitLayer::new(limiter).respond()`",
    note = "a service that isn't HTTP needs `.classify(|request: &R| ..)` and `.observe(|response: &R| ..)`"
)]
pub trait Classify<Request> {
    /// The request's keys and cost. `key` is the layer's own, which wins over what the request says,
    /// but not over what it [asks](Ask) for.
    fn classify(&self, request: &Request, key: Option<&str>) -> Classified;
}

impl<F, Request> Classify<Request> for F
where
    F: Fn(&Request) -> Classified,
{
    fn classify(&self, request: &Request, key: Option<&str>) -> Classified {
        let mut classified = self(request);
        if let Some(key) = key {
            classified.own_key(key.into());
        }
        classified
    }
}
