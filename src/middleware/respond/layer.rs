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

/// Protects a service's own endpoints: who is over the limit is answered, not passed on. Made by
/// [`RateLimitLayer::respond`]; see the [module](super).
pub struct RespondLayer<C = Scopes>(RateLimitLayer<C, Reply>);

impl RateLimitLayer {
    /// Server mode: answers refusals itself, at once or after [`max_wait`](RespondLayer::max_wait),
    /// and fails only if the service inside does. Keys that were set stay; requests are no longer
    /// read as a provider would.
    #[must_use]
    pub fn respond(self) -> RespondLayer {
        let (limiter, mut options) = (self.shared.limiter.clone(), self.shared.options.clone());
        options.max_wait.get_or_insert(Duration::ZERO);
        options.answers = true;
        let (scopes, reply) = (Scopes::default(), Reply::default());
        RespondLayer(RateLimitLayer::from_parts(limiter, scopes, reply, options, Once))
    }
}

impl RespondLayer {
    /// Counts requests by this scope too: all of its scopes let a request in, or none is charged.
    /// Without any, all requests fall under the key `service`.
    #[must_use]
    pub fn scope(self, scope: impl Into<Scope>) -> Self {
        let mut scopes = self.0.shared.classify.clone();
        scopes.push(scope.into());
        self.classify(scopes)
    }

    /// Asks `cost` what a request takes, in each of its scopes. Default: one request, no tokens.
    #[must_use]
    pub fn cost(self, cost: impl Fn(Head<'_>) -> Cost + Send + Sync + 'static) -> Self {
        let mut scopes = self.0.shared.classify.clone();
        scopes.set_cost(cost);
        self.classify(scopes)
    }
}

impl<C: Clone> RespondLayer<C> {
    /// Lets a request wait for this long instead of refusing it at once. Who would have to wait
    /// longer is refused at once.
    #[must_use]
    pub fn max_wait(self, wait: Duration) -> Self {
        Self(self.0.max_wait(wait))
    }

    /// Asks `classify` what a request is, instead of its scopes.
    #[must_use]
    pub fn classify<C2>(self, classify: C2) -> RespondLayer<C2> {
        RespondLayer(self.0.classify(classify))
    }

    /// Asks `charge` what a request really took, once the head of its response is there. `None`
    /// leaves it to the response's [`Charge`](crate::middleware::Charge), or else to what was
    /// reserved.
    #[must_use]
    pub fn charge(self, charge: impl Fn(&Parts) -> Option<Cost> + Send + Sync + 'static) -> Self {
        Self(self.0.observe(Reply::charging(charge)))
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
