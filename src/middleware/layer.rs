use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use tower_layer::Layer;

use super::http::Http;
use super::keys::{Key, Keys};
use super::learned::Learned;
use super::service::RateLimitService;
use crate::limiter::Limiter;
use crate::provider::{COMPATIBLE, Profile};

/// Wraps a client so that it keeps to its limits. See the [module](super) for what it does when.
///
/// All state is in the limiter: `layer()` called a thousand times is one limit.
pub struct RateLimitLayer<C = Http, O = Http> {
    pub(super) shared: Arc<Settings<C, O>>,
}

pub(super) struct Settings<C, O> {
    pub(super) limiter: Limiter,
    pub(super) classify: C,
    pub(super) observe: O,
    pub(super) options: Options,
    pub(super) learned: Learned,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) key: Option<CompactString>,
    /// The layer's own key, and its other scopes.
    pub(super) keys: Keys,
    pub(super) max_wait: Option<Duration>,
    pub(super) discover: bool,
}

impl Options {
    /// The scopes beside the request's own key.
    pub(super) fn scopes(&self) -> &[Key] {
        &self.keys[usize::from(self.key.is_some())..]
    }
}

impl RateLimitLayer {
    /// A layer for HTTP requests, read as the limiter's first provider has them (any
    /// OpenAI-compatible one, if it has none).
    pub fn new(limiter: Limiter) -> Self {
        let profile = limiter.profile("").unwrap_or(COMPATIBLE);
        let options = Options::default();
        Self::from_parts(limiter, Http::new(profile), Http::new(profile), options)
    }

    /// Reads requests and responses as this provider has them.
    #[must_use]
    pub fn provider(self, profile: Profile) -> Self {
        let (limiter, options) = (self.shared.limiter.clone(), self.shared.options.clone());
        Self::from_parts(limiter, Http::new(profile), Http::new(profile), options)
    }
}

impl<C: Clone, O: Clone> RateLimitLayer<C, O> {
    /// Charges every request to this key, whatever model it names, and lets `poll_ready` wait for it.
    #[must_use]
    pub fn key(self, key: impl Into<CompactString>) -> Self {
        let key = key.into();
        self.with(|options| {
            let had = options.key.replace(key.clone()).is_some();
            options.keys.drain(..usize::from(had));
            options.keys.insert(0, Key::public(key));
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
    pub fn scope(self, key: impl Into<CompactString>) -> Self {
        let key = Key::public(key);
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

    /// Learns the limits of keys that have none from the headers of their responses. A configured
    /// quota stays as it is.
    #[must_use]
    pub fn discover(self) -> Self {
        self.with(|options| options.discover = true)
    }

    /// Asks `classify` what a request is.
    #[must_use]
    pub fn classify<C2>(self, classify: C2) -> RateLimitLayer<C2, O> {
        let Settings { limiter, observe, options, .. } = &*self.shared;
        RateLimitLayer::from_parts(limiter.clone(), classify, observe.clone(), options.clone())
    }

    /// Asks `observe` what a response says.
    #[must_use]
    pub fn observe<O2>(self, observe: O2) -> RateLimitLayer<C, O2> {
        let Settings { limiter, classify, options, .. } = &*self.shared;
        RateLimitLayer::from_parts(limiter.clone(), classify.clone(), observe, options.clone())
    }

    fn with(self, change: impl FnOnce(&mut Options)) -> Self {
        let Settings { limiter, classify, observe, options, .. } = &*self.shared;
        let mut options = options.clone();
        change(&mut options);
        Self::from_parts(limiter.clone(), classify.clone(), observe.clone(), options)
    }
}

impl<C, O> RateLimitLayer<C, O> {
    pub(super) fn from_parts(limiter: Limiter, classify: C, observe: O, options: Options) -> Self {
        let learned = Learned::default();
        Self { shared: Arc::new(Settings { limiter, classify, observe, options, learned }) }
    }
}

impl<C, O> Clone for RateLimitLayer<C, O> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<C, O> fmt::Debug for RateLimitLayer<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").field("options", &self.shared.options).finish()
    }
}

impl<S, C, O> Layer<S> for RateLimitLayer<C, O> {
    type Service = RateLimitService<S, C, O>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimitService::new(inner, Arc::clone(&self.shared))
    }
}
