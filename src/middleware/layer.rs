use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::quota::Key;
use tower_layer::Layer;

use super::http::Http;
use super::queue_slots::QueueSlots;
use super::retry::RetryService;
use super::scope_key::ScopeKey;
use super::service::RateLimitService;
use super::settings::{Options, Settings};
use super::typical_cost::TypicalCost;
use crate::limiter::{Limiter, Priority};
use crate::price::PriceList;
use crate::provider::{COMPATIBLE, Profile};

/// A layer that applies a [`Limiter`] to the requests of a service. See the [module](super) for the steps
/// of a request.
///
/// All state is in the limiter, so that all services that one layer creates share the limits.
///
/// Each request is sent once, unless [`retry`](Self::retry) is set.
///
/// # Panics
/// Waiting for a time needs a tokio runtime with timers: outside of one, the `poll_ready` and the futures of its
/// services panic when they have to wait. A layer with [`reject`](Self::reject) and without `retry` never waits.
pub struct RateLimitLayer<C = Http, O = Http, R = Once> {
    pub(super) shared: Arc<Settings<C, O>>,
    pub(super) retries: R,
}

/// The retry setting of a [`RateLimitLayer`] that sends each request once.
#[derive(Debug, Clone, Copy)]
pub struct Once;

/// The retry setting of a [`RateLimitLayer`] that retries transient failures.
#[derive(Debug, Clone, Copy)]
pub struct Retries(pub(super) u32);

impl RateLimitLayer {
    /// Creates a layer for HTTP requests in the format of the limiter's first provider, or in the
    /// OpenAI-compatible format if the limiter has no provider.
    pub fn new(limiter: Limiter) -> Self {
        let rules = limiter.quotas().rules_of("");
        let profile = rules.and_then(|rules| Profile::of_rules(&*rules)).unwrap_or(COMPATIBLE);
        let options = Options::default();
        let read = Http::new(profile);
        Self::from_parts(limiter, read, read, options, Once)
    }
}

impl<R: Copy> RateLimitLayer<Http, Http, R> {
    /// Sets the provider whose format requests and responses have.
    #[must_use]
    pub fn provider(self, profile: Profile) -> Self {
        let Settings { limiter, classify, observe, options, .. } = &*self.shared;
        let (classify, observe) = (classify.with_profile(profile), observe.with_profile(profile));
        Self::from_parts(limiter.clone(), classify, observe, options.clone(), self.retries)
    }
}

impl<C: Clone, O: Clone, R: Copy> RateLimitLayer<C, O, R> {
    /// Charges every request to this key instead of the model that it names. `poll_ready` waits until
    /// the key has quota for a typical request.
    #[must_use]
    pub fn key(self, key: impl Into<Key>) -> Self {
        let key = key.into();
        self.with(|options| {
            let was_set = options.key.replace(key.clone()).is_some();
            options.keys.drain(..usize::from(was_set));
            options.keys.insert(0, ScopeKey::public(key));
        })
    }

    /// Charges every request to this key in addition to its own, for example to an account in addition
    /// to the model. A request is admitted if all keys have quota for it. `poll_ready` waits for this
    /// key too. May be called several times.
    ///
    /// To derive a scope from each request, use [`classify`](Self::classify):
    ///
    /// ```
    /// use paceline::middleware::{Classify, Http, RateLimitLayer};
    /// use paceline::{Limiter, Quota, provider::OPENAI};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::builder()
    ///     .provider(OPENAI)
    ///     .quota("tenant:*", Quota::new().tpm(100_000))
    ///     .quota("account", Quota::new().rpd(10_000))
    ///     .build()?;
    /// let read = Http::new(OPENAI);
    /// let layer = RateLimitLayer::new(limiter).scope("account").classify(
    ///     move |request: &http::Request<String>| {
    ///         let classified = read.classify(request, None);
    ///         match request.headers().get("x-tenant").and_then(|tenant| tenant.to_str().ok()) {
    ///             Some(tenant) => classified.scope(format!("tenant:{tenant}")),
    ///             None => classified,
    ///         }
    ///     },
    /// );
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn scope(self, key: impl Into<Key>) -> Self {
        let key = ScopeKey::public(key);
        self.with(|options| options.keys.push(key))
    }

    /// Sets the priority of the requests, in place of the one by the limiter's
    /// [`WaitPolicy`](crate::limiter::WaitPolicy). An [`Ask`](super::Ask) takes precedence.
    #[must_use]
    pub fn priority(self, priority: Priority) -> Self {
        self.with(|options| options.standing.priority = Some(priority))
    }

    /// Counts the requests as one flow, in place of the one by the limiter's
    /// [`WaitPolicy`](crate::limiter::WaitPolicy). An [`Ask`](super::Ask) takes precedence.
    #[must_use]
    pub fn flow(self, name: impl Into<Key>) -> Self {
        let name = name.into();
        self.with(|options| options.standing.flow = Some(name))
    }

    /// Sets the prices by which the limiter's limits on spending count: [`Prices`](crate::price::Prices), or a
    /// [`PriceList`] that can change. Default: the built-in prices.
    #[must_use]
    pub fn prices(self, prices: impl Into<PriceList>) -> Self {
        let prices = prices.into();
        self.with(|options| options.prices = prices)
    }

    /// Rejects a request immediately if it would have to wait longer than this from its `call`.
    /// Default: unlimited.
    #[must_use]
    pub fn max_wait(self, wait: Duration) -> Self {
        self.with(|options| options.max_wait = Some(wait))
    }

    /// Rejects a request immediately if it would have to wait.
    #[must_use]
    pub fn reject(self) -> Self {
        self.max_wait(Duration::ZERO)
    }

    /// Sets the number of requests of this layer that may wait after their call, under all keys together.
    /// `poll_ready` waits while as many do, unless a [`max_wait`](Self::max_wait) is set. Default: 5,000.
    ///
    /// A service that is ready holds no slot, since it may never be called. So a few more requests wait if
    /// several services were ready at the same time.
    ///
    /// The limiter's bound for each key, [`Builder::max_waiting`](crate::limiter::Builder::max_waiting), stays:
    /// a request beyond that fails.
    #[must_use]
    pub fn max_waiting(self, requests: usize) -> Self {
        self.with(|options| options.max_waiting = Some(requests))
    }

    /// Lets requests of a key wait while its server can't be reached or fails all of them (5xx, broken connections,
    /// timeouts), as they do while a provider says that it is overloaded: after five failures in a row, one request at
    /// a time tests the server, after 1 s and then after twice the time, up to 30 s.
    ///
    /// For jobs whose work can wait. Without it such failures are returned as they come, and retried with
    /// [`retry`](Self::retry).
    #[must_use]
    pub fn wait_for_server(self) -> Self {
        self.with(|options| options.waits_for_server = true)
    }

    /// Sets the [`Classify`](super::Classify) that determines the keys and the cost of a request.
    #[must_use]
    pub fn classify<C2>(self, classify: C2) -> RateLimitLayer<C2, O, R> {
        let Settings { limiter, observe, options, .. } = &*self.shared;
        let (limiter, observe) = (limiter.clone(), observe.clone());
        RateLimitLayer::from_parts(limiter, classify, observe, options.clone(), self.retries)
    }

    /// Sets the [`Observe`](super::Observe) that determines the actual cost from a response.
    #[must_use]
    pub fn observe<O2>(self, observe: O2) -> RateLimitLayer<C, O2, R> {
        let Settings { limiter, classify, options, .. } = &*self.shared;
        let (limiter, classify) = (limiter.clone(), classify.clone());
        RateLimitLayer::from_parts(limiter, classify, observe, options.clone(), self.retries)
    }

    /// Retries a request after a transient failure, up to `times` times. Each attempt goes through the
    /// queue and is charged separately. A 429 costs none of these retries while the provider accepts
    /// other requests of the key, or has refused all of them for less than two minutes. See [`retry`](super::retry) for the failures that are retried
    /// and the delays.
    #[must_use]
    pub fn retry(self, times: u32) -> RateLimitLayer<C, O, Retries> {
        RateLimitLayer { shared: self.shared, retries: Retries(times) }
    }

    fn with(self, change: impl FnOnce(&mut Options)) -> Self {
        let Settings { limiter, classify, observe, options, .. } = &*self.shared;
        let mut options = options.clone();
        change(&mut options);
        let (limiter, classify) = (limiter.clone(), classify.clone());
        Self::from_parts(limiter, classify, observe.clone(), options, self.retries)
    }
}

impl<C, O, R> RateLimitLayer<C, O, R> {
    pub(super) fn from_parts(
        limiter: Limiter,
        classify: C,
        observe: O,
        options: Options,
        retries: R,
    ) -> Self {
        let typical_cost = TypicalCost::default();
        let slots = QueueSlots::new(options.slots(), limiter.clone());
        let settings = Settings { limiter, classify, observe, options, typical_cost, slots };
        Self { shared: Arc::new(settings), retries }
    }
}

impl<C, O, R: Copy> Clone for RateLimitLayer<C, O, R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), retries: self.retries }
    }
}

impl<C, O, R: fmt::Debug> fmt::Debug for RateLimitLayer<C, O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("options", &self.shared.options)
            .field("retries", &self.retries)
            .finish()
    }
}

impl<S, C, O> Layer<S> for RateLimitLayer<C, O> {
    type Service = RateLimitService<S, C, O>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimitService::new(inner, Arc::clone(&self.shared))
    }
}

impl<S, C, O> Layer<S> for RateLimitLayer<C, O, Retries> {
    type Service = RetryService<S, C, O>;

    fn layer(&self, inner: S) -> Self::Service {
        let limited = RateLimitService::new(inner, Arc::clone(&self.shared));
        RetryService::new(limited, self.retries.0)
    }
}
