use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::quota::Key;
use tower_layer::Layer;

use super::http::Http;
use super::learned::Learned;
use super::retry::RetryService;
use super::scope_key::ScopeKey;
use super::service::RateLimitService;
use super::settings::{Options, Settings};
use crate::limiter::Limiter;
use crate::provider::{COMPATIBLE, Profile};

/// Wraps a client so that it keeps to its limits. See the [module](super) for what it does when.
///
/// All state is in the limiter: `layer()` called a thousand times is one limit.
///
/// It sends each request once, unless [`retry`](Self::retry) says otherwise.
pub struct RateLimitLayer<C = Http, O = Http, R = Once> {
    pub(super) shared: Arc<Settings<C, O>>,
    pub(super) retries: R,
}

/// Of a [`RateLimitLayer`]: each request is sent once.
#[derive(Debug, Clone, Copy)]
pub struct Once;

/// Of a [`RateLimitLayer`]: a request that fails in passing is sent again, so many times.
#[derive(Debug, Clone, Copy)]
pub struct Retries(pub(super) u32);

impl RateLimitLayer {
    /// A layer for HTTP requests, read as the limiter's first provider has them (any
    /// OpenAI-compatible one, if it has none).
    pub fn new(limiter: Limiter) -> Self {
        let profile = limiter.quotas().profile_of("").unwrap_or(COMPATIBLE);
        let options = Options::default();
        let read = Http::new(profile);
        Self::from_parts(limiter, read, read, options, Once)
    }
}

impl<R: Copy> RateLimitLayer<Http, Http, R> {
    /// Reads requests and responses as this provider has them.
    #[must_use]
    pub fn provider(self, profile: Profile) -> Self {
        let Settings { limiter, classify, observe, options, .. } = &*self.shared;
        let (classify, observe) = (classify.with_profile(profile), observe.with_profile(profile));
        Self::from_parts(limiter.clone(), classify, observe, options.clone(), self.retries)
    }
}

impl<C: Clone, O: Clone, R: Copy> RateLimitLayer<C, O, R> {
    /// Charges every request to this key, whatever model it names, and lets `poll_ready` wait for it.
    #[must_use]
    pub fn key(self, key: impl Into<Key>) -> Self {
        let key = key.into();
        self.with(|options| {
            let had = options.key.replace(key.clone()).is_some();
            options.keys.drain(..usize::from(had));
            options.keys.insert(0, ScopeKey::public(key));
        })
    }

    /// Charges every request to this key too, all or none: an account, beside the model that each
    /// names. `poll_ready` waits for it. Any number of them.
    ///
    /// A scope that each request names goes through [`classify`](Self::classify):
    ///
    /// ```
    /// use tollgate::middleware::{Classify, Http, RateLimitLayer};
    /// use tollgate::{Limiter, Quota, provider::OPENAI};
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

    /// Fails a request at once that would have to wait longer than this, counted from its `call`.
    /// Default: no bound.
    #[must_use]
    pub fn max_wait(self, wait: Duration) -> Self {
        self.with(|options| options.max_wait = Some(wait))
    }

    /// Never waits: a request that doesn't fit now fails at once.
    #[must_use]
    pub fn reject(self) -> Self {
        self.max_wait(Duration::ZERO)
    }

    /// Learns the limits of keys from the headers of their responses, where you have set no quota: a
    /// provider's built-in one, that of its lowest paid tier, gives way. Your own stay as they are.
    #[must_use]
    pub fn discover(self) -> Self {
        self.with(|options| options.discover = true)
    }

    /// Asks `classify` what a request is.
    #[must_use]
    pub fn classify<C2>(self, classify: C2) -> RateLimitLayer<C2, O, R> {
        let Settings { limiter, observe, options, .. } = &*self.shared;
        let (limiter, observe) = (limiter.clone(), observe.clone());
        RateLimitLayer::from_parts(limiter, classify, observe, options.clone(), self.retries)
    }

    /// Asks `observe` what a response says.
    #[must_use]
    pub fn observe<O2>(self, observe: O2) -> RateLimitLayer<C, O2, R> {
        let Settings { limiter, classify, options, .. } = &*self.shared;
        let (limiter, classify) = (limiter.clone(), classify.clone());
        RateLimitLayer::from_parts(limiter, classify, observe, options.clone(), self.retries)
    }

    /// Sends a request that fails in passing up to `times` times again, each try through the queue
    /// and charged as a request of its own. See [`retry`](super::retry) for what is sent again, and
    /// when.
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
        let learned = Learned::default();
        let shared = Arc::new(Settings { limiter, classify, observe, options, learned });
        Self { shared, retries }
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
