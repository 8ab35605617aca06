use std::sync::Arc;

use http::header::UPGRADE;
use http::{Extensions, HeaderMap};

use super::ask::Ask;
use super::call::Call;
use super::journey::Journey;
use super::scope_key::{ScopeKey, ScopeKeys};
use crate::Timestamp;
use crate::limiter::Limiter;
use crate::price::{Price, PriceList, Prices};
use crate::provider::seam::{self as provider_seam, CachedPrompt, OutputGuess, Pricing};
use crate::provider::{Estimate, Terms};
use crate::quota::{Cost, Dimension};
use paceline_limiter::seam::{self, OwnStanding};

/// The keys, cost and options under which the limiter handles a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Classified {
    pub(super) keys: ScopeKeys,
    pub(super) cost: Cost,
    /// The terms by which the reported usage is charged.
    pub terms: Terms,
    /// The time until which the request may wait, if the layer's `max_wait` doesn't end sooner.
    pub deadline: Option<Timestamp>,
    /// The handle through which the caller observes the request.
    pub journey: Option<Journey>,
    /// The mode that the provider counts apart.
    pub(super) mode: Option<&'static str>,
    /// The provider call, for spans and events; `None` for other requests.
    pub(super) call: Option<Call>,
    ask: Option<Box<Ask>>,
    /// The priority and the flow of its `Ask`.
    pub(super) standing: Option<Box<OwnStanding>>,
    /// The most tokens that the request can use, for its price.
    pub(super) most: MostTokens,
    /// The terms of its price; `None` if that isn't the price of its tokens.
    pricing: Option<Pricing>,
    /// The price of the request, if a quota limits spending.
    pub(super) price: Option<Arc<Price>>,
    /// The output part of the cost, if it is a guess that the output of earlier requests may replace.
    pub(super) guess: Option<OutputGuess>,
    /// The number of the request, the same for all its attempts; 0 if it has one attempt.
    pub(super) number: u64,
    /// `true` if an earlier attempt has failed, other than by a refusal for a limit.
    pub(super) has_failed: bool,
    pub(super) cached: CachedPrompt,
    /// `true` for a HEAD request, whose response has no body even if its headers describe one.
    pub(super) is_head: bool,
    /// `true` if requests wait while the server fails all of them.
    pub(super) waits_for_server: bool,
}

impl Classified {
    /// Creates a request with this key and cost.
    pub fn new(key: impl Into<ScopeKey>, cost: Cost) -> Self {
        let mut keys = ScopeKeys::new();
        keys.push(key.into());
        Self {
            keys,
            cost,
            terms: Terms::default(),
            deadline: None,
            journey: None,
            mode: None,
            call: None,
            ask: None,
            standing: None,
            most: MostTokens::default(),
            pricing: None,
            price: None,
            guess: None,
            number: 0,
            has_failed: false,
            cached: CachedPrompt::CHARGED,
            is_head: false,
            waits_for_server: false,
        }
    }

    /// Creates a request with this key from a provider's estimate.
    pub(super) fn estimated(key: impl Into<ScopeKey>, mut estimate: Estimate) -> Self {
        let (terms, guess) = (estimate.terms, provider_seam::output_guess(&estimate));
        let (mode, cached) = (estimate.mode, provider_seam::cached_prompt(&estimate));
        let (most, pricing) =
            (MostTokens::of(&estimate), provider_seam::pricing(&mut estimate).take());
        Self { terms, guess, cached, most, pricing, mode, ..Self::new(key, estimate.cost) }
    }

    /// Sets the provider call.
    pub(super) fn with_call(self, call: Call) -> Self {
        Self { call: Some(call), ..self }
    }

    /// Counts the request under the name of its model in the quota that covers it, if the provider has several names for
    /// one model.
    #[inline]
    pub(super) fn use_name_in_quota(&mut self, limiter: &Limiter) {
        if self.call.as_ref().is_some_and(|call| provider_seam::unifies_models(&call.profile)) {
            self.look_up_name(limiter);
        }
    }

    #[cold]
    fn look_up_name(&mut self, limiter: &Limiter) {
        if let Some(call) = &mut self.call
            && let Some(key) = self.keys.first_mut().filter(|key| key.is_model())
        {
            let model =
                key.rename(|model| provider_seam::key_of_model(&call.profile, limiter, model));
            call.model.get_or_insert(model);
        }
    }

    /// Applies [`use_name_in_quota`](Self::use_name_in_quota) before the layer does, for callers that use the keys.
    #[doc(hidden)]
    #[must_use]
    pub fn with_names_in_quotas(mut self, limiter: &Limiter) -> Self {
        self.use_name_in_quota(limiter);
        self
    }

    /// Replaces guessed output with the expected output of the key, if earlier responses gave one, and marks a prompt as a
    /// guess that may be read from a cache as those were.
    #[inline]
    pub(super) fn use_expected_usage(&mut self, limiter: &Limiter) {
        if self.guess.is_some() || self.cached.may_be_free() {
            self.look_up_usage(limiter);
        }
    }

    fn look_up_usage(&mut self, limiter: &Limiter) {
        let Some(key) = self.keys.first() else { return };
        let (tokens, reads_cache) = seam::expected_usage(limiter.feedback(), key.as_str());
        if let (Some(guess), Some(tokens)) = (self.guess, tokens) {
            self.cost = guess.apply(std::mem::take(&mut self.cost), tokens);
        }
        self.cost = self.cached.guess(std::mem::take(&mut self.cost), reads_cache);
    }

    /// Adds the most that the request can cost in money, if a quota of the limiter limits spending and the
    /// caller hasn't set an amount. A request whose price isn't known gets none, and is refused by keys that limit
    /// spending.
    #[inline]
    pub(super) fn set_price(&mut self, limiter: &Limiter, prices: &PriceList) {
        if seam::limits_spending(limiter) {
            self.look_up_price(limiter, &prices.current());
        }
    }

    /// Adds the model as a key, if its mode is a key that the limiter doesn't know as that of a mode: the layer has
    /// another provider than the limiter. The request then counts to the model's budget by that key.
    fn add_model_of_mode(&mut self, limiter: &Limiter) {
        let model = self.call.as_ref().and_then(|call| call.model.as_ref());
        let (Some(mode), Some(model), Some(key)) = (self.mode, model, self.keys.first()) else {
            return;
        };
        let of_mode = key.as_str().strip_prefix(&**model).and_then(|rest| rest.strip_prefix(':'));
        if of_mode == Some(mode) && !seam::knows_mode(limiter, key.as_str()) {
            let model = ScopeKey::of_model(model.clone());
            self.keys.push(model);
        }
    }

    /// Adds a budget that refuses a request without a price and without a model, if a model of the provider has one: it
    /// would count nowhere, although it may run that model.
    fn add_budget_of_models(&mut self, limiter: &Limiter, prices: &Prices) {
        let Some(call) = &self.call else { return };
        let budget = match self.keys.iter().any(ScopeKey::is_unknown_model) {
            true => {
                let profile = call.profile;
                let patterns = profile.quotas().iter().map(|quota| quota.pattern);
                seam::budget_of_models(
                    limiter,
                    profile.name(),
                    &patterns.collect::<Vec<_>>(),
                    |name| prices.of(profile, name).is_some(),
                    |is_meant| provider_seam::any_model(prices, profile, is_meant),
                )
            }
            false => None,
        };
        self.keys.extend(budget.map(ScopeKey::new));
    }

    #[cold]
    fn look_up_price(&mut self, limiter: &Limiter, prices: &Prices) {
        self.add_model_of_mode(limiter);
        let Some(call) = &self.call else { return };
        if seam::states_usd(&self.cost) {
            return;
        }
        if call.is_free {
            return seam::set_amount(&mut self.cost, &Dimension::usd(), 0);
        }
        let model = call.model.as_deref().or(self.keys.first().map(ScopeKey::as_str));
        let price = self.pricing.as_ref().zip(model).and_then(|(pricing, model)| {
            let mode = pricing.mode.as_deref().unwrap_or_default();
            let of = |model| prices.of_mode(call.profile, model, mode);
            let mut others = pricing.fallbacks.iter();
            let price = others.try_fold(of(model)?, |price, model| {
                Some(Arc::new(price.or_dearer(&*of(model)?)))
            })?;
            Some((self.most.bounded(pricing, &price)?, price))
        });
        let Some((most, price)) = price else { return self.add_budget_of_models(limiter, prices) };
        let price = if most.has_audio { Arc::new(price.with_audio()) } else { price };
        let reserved = price.most(most.input, most.output.unwrap_or(u64::MAX));
        seam::set_amount(&mut self.cost, &Dimension::usd(), reserved);
        (self.most, self.price) = (most, Some(price));
    }

    /// Returns the cost to reserve under each key.
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Sets the cost to reserve. It replaces the estimate, and expected output isn't applied to it.
    ///
    /// ```
    /// # use paceline::{limiter::Limiter, provider::OPENAI};
    /// use paceline::middleware::{Classify, Http, RateLimitLayer};
    /// use paceline::quota::Cost;
    /// # let limiter = Limiter::builder().provider(OPENAI).build()?;
    /// let http = Http::new(OPENAI);
    /// let layer = RateLimitLayer::new(limiter).classify(move |request: &http::Request<String>| {
    ///     http.classify(request, None).with_cost(Cost::new().tokens(1_200))
    /// });
    /// # Ok::<(), paceline::limiter::BuildError>(())
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
        self.cached = CachedPrompt::CHARGED;
        self.most.is_charged_as_received = false;
    }

    /// Adds a key whose quota the request is charged to as well.
    #[must_use]
    pub fn scope(mut self, key: impl Into<ScopeKey>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Replaces the keys. The first becomes the request's primary key. If `keys` is empty, the keys
    /// stay unchanged.
    #[must_use]
    pub fn with_keys(mut self, keys: impl IntoIterator<Item = ScopeKey>) -> Self {
        let mut keys = keys.into_iter();
        if let Some(primary) = keys.next() {
            self.set_primary_key(primary);
            self.keys.truncate(1);
            self.keys.extend(keys);
        }
        self
    }

    /// Returns the keys that the request is charged to: the primary key first, then the other scopes.
    pub fn keys(&self) -> &[ScopeKey] {
        &self.keys
    }

    /// Applies an [`Ask`] and a [`Journey`] from the extensions of an HTTP request. The `Ask` takes
    /// precedence over the other settings.
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

    /// Notes that a request isn't known to be free if it asks for another protocol, over which a model may run, or for
    /// another method.
    pub(super) fn doubt_free(&mut self, headers: &HeaderMap) {
        if let Some(call) = self.call.as_mut().filter(|call| call.is_free) {
            let is_other = |name: &str| headers.contains_key(name);
            call.is_free = ![UPGRADE.as_str(), "x-http-method-override"].into_iter().any(is_other);
        }
    }

    /// Applies the request's [`Ask`] and returns its deadline.
    #[inline]
    pub(super) fn apply_ask(&mut self) -> Option<Timestamp> {
        if self.ask.is_some() { self.take_ask() } else { None }
    }

    fn take_ask(&mut self) -> Option<Timestamp> {
        let ask = *self.ask.take()?;
        if let Some(key) = ask.key {
            self.set_primary_key(key);
        }
        if let Some(cost) = ask.cost {
            self.set_cost(cost);
        }
        if ask.standing != OwnStanding::default() {
            self.standing = Some(Box::new(ask.standing));
        }
        ask.deadline
    }

    /// Replaces the primary key. A replaced model name is kept for spans and events.
    pub(super) fn set_primary_key(&mut self, key: ScopeKey) {
        let Some(first) = self.keys.first_mut() else { return self.keys.push(key) };
        let named = std::mem::replace(first, key);
        if let Some(Call { model: model @ None, .. }) = &mut self.call {
            *model = Some(named.into_text());
        }
    }
}

/// The most tokens that a request can use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MostTokens {
    pub(super) input: u64,
    /// `None` if the request doesn't bound it.
    pub(super) output: Option<u64>,
    has_audio: bool,
    /// `true` if a stream that is cut off is charged for what was received.
    pub(super) is_charged_as_received: bool,
}

impl MostTokens {
    fn of(estimate: &Estimate) -> Self {
        let Estimate { max_input, max_output, has_audio, is_charged_as_received, .. } = *estimate;
        Self { input: max_input, output: max_output, has_audio, is_charged_as_received }
    }

    /// Returns the tokens with the bounds of the model where the request sets none; `None` if these aren't known
    /// either.
    fn bounded(self, pricing: &Pricing, price: &Price) -> Option<Self> {
        let (max_input, max_output) = provider_seam::bounds(price);
        let input = if self.input == u64::MAX { max_input? } else { self.input };
        let output = match (self.output, pricing.generates) {
            (_, false) => 0,
            (Some(output), true) => output,
            (None, true) => max_output?.saturating_mul(u64::from(pricing.choices)),
        };
        Some(Self { input, output: Some(output), ..self })
    }
}

/// Determines the keys and the cost of a request.
///
/// Closures implement it: `|request: &R| Classified::new("key", Cost::new())`.
#[diagnostic::on_unimplemented(
    message = "the rate-limit layer cannot determine the cost of a `{Request}`",
    note = "the request body must implement `PeekBody`; for a streaming body, add a `BufferBodyLayer` before the `RateLimitLayer`",
    note = "for an axum router, use server mode: `RateLimitLayer::new(limiter).respond()`",
    note = "for a service that isn't HTTP, set `.classify(|request: &Req| ..)` and `.observe(|response: &Res| ..)`"
)]
pub trait Classify<Request> {
    /// Returns the request's keys and cost. `key` is the layer's [`key`](super::RateLimitLayer::key):
    /// it replaces the key that the request names, but not the key of an [`Ask`].
    fn classify(&self, request: &Request, key: Option<&str>) -> Classified;
}

impl<F, Request> Classify<Request> for F
where
    F: Fn(&Request) -> Classified,
{
    fn classify(&self, request: &Request, key: Option<&str>) -> Classified {
        let mut classified = self(request);
        if let Some(key) = key {
            classified.set_primary_key(key.into());
        }
        classified
    }
}
