use std::fmt;
use std::time::Duration;

use http::response::Parts;
use tower_layer::Layer;

use super::head::Head;
use super::reply::Reply;
use super::scope::Scope;
use super::scopes::Scopes;
use super::service::Respond;
use crate::middleware::RateLimitLayer;
use crate::middleware::layer::Once;
use crate::quota::Cost;

/// A layer that protects a service's own endpoints: requests over the limit get a response without
/// reaching the inner service.
///
/// Created by [`RateLimitLayer::respond`]. See the [module](super) for details.
pub struct RespondLayer<C = Scopes>(RateLimitLayer<C, Reply>);

impl RateLimitLayer {
    /// Switches to server mode: the layer answers requests over the limit itself, immediately or after
    /// [`max_wait`](RespondLayer::max_wait), and fails only if the inner service fails.
    ///
    /// A [`key`](Self::key) that is already set is kept. Requests are classified by scopes instead of by
    /// a provider profile.
    #[must_use]
    pub fn respond(self) -> RespondLayer {
        let (limiter, mut options) = (self.shared.limiter.clone(), self.shared.options.clone());
        options.max_wait.get_or_insert(Duration::ZERO);
        options.is_server_mode = true;
        let (scopes, reply) = (Scopes::default(), Reply::default());
        RespondLayer(RateLimitLayer::from_parts(limiter, scopes, reply, options, Once))
    }
}

impl RespondLayer {
    /// Adds a scope by which requests are counted.
    ///
    /// A request is admitted only if all scopes admit it; otherwise no scope is charged. Without any
    /// scope, all requests share the key `service`.
    #[must_use]
    pub fn scope(self, scope: impl Into<Scope>) -> Self {
        let mut scopes = self.0.shared.classify.clone();
        scopes.push(scope.into());
        self.classify(scopes)
    }

    /// Sets the function that returns the cost of a request, which is charged to each of its scopes.
    /// Default: one request, no tokens.
    #[must_use]
    pub fn cost(self, cost: impl Fn(Head<'_>) -> Cost + Send + Sync + 'static) -> Self {
        let mut scopes = self.0.shared.classify.clone();
        scopes.set_cost(cost);
        self.classify(scopes)
    }
}

impl<C: Clone> RespondLayer<C> {
    /// Queues requests over the limit for up to `wait`. A request that would have to wait longer is
    /// refused immediately. Default: no wait.
    #[must_use]
    pub fn max_wait(self, wait: Duration) -> Self {
        Self(self.0.max_wait(wait))
    }

    /// Sets the [`Classify`](crate::middleware::Classify) that determines the keys and the cost of a
    /// request, in place of the scopes.
    #[must_use]
    pub fn classify<C2>(self, classify: C2) -> RespondLayer<C2> {
        RespondLayer(self.0.classify(classify))
    }

    /// Sets the function that returns the actual cost of a request from the head of its response.
    ///
    /// If it returns `None`, the [`ActualCost`](crate::middleware::ActualCost) in the response's
    /// extensions applies, or without one the reserved cost.
    #[must_use]
    pub fn charge(self, charge: impl Fn(&Parts) -> Option<Cost> + Send + Sync + 'static) -> Self {
        Self(self.0.observe(Reply::with_charge(charge)))
    }
}

impl<S, C> Layer<S> for RespondLayer<C> {
    type Service = Respond<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        Respond::new(self.0.layer(inner))
    }
}

impl<C> Clone for RespondLayer<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for RespondLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RespondLayer").field("options", &self.0.shared.options).finish()
    }
}
