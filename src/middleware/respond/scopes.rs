use std::fmt;
use std::sync::Arc;

use super::head::Head;
use super::scope::Scope;
use crate::middleware::{Classified, Classify, ScopeKey};
use crate::quota::{Cost, Key};

/// The scopes and the cost of requests in server mode. A request costs one request unless a cost
/// function is set; its body isn't read.
#[derive(Clone, Default)]
pub struct Scopes {
    scopes: Vec<Scope>,
    cost: Option<Arc<CostFn>>,
}

type CostFn = dyn Fn(Head<'_>) -> Cost + Send + Sync;

impl Scopes {
    pub(super) fn push(&mut self, scope: Scope) {
        self.scopes.push(scope);
    }

    pub(super) fn set_cost(&mut self, cost: impl Fn(Head<'_>) -> Cost + Send + Sync + 'static) {
        self.cost = Some(Arc::new(cost));
    }
}

impl<B> Classify<http::Request<B>> for Scopes {
    fn classify(&self, request: &http::Request<B>, key: Option<&str>) -> Classified {
        let head = Head::of(request);
        let cost = self.cost.as_ref().map_or_else(Cost::new, |cost| cost(head));
        let mut keys = key
            .map(ScopeKey::public)
            .into_iter()
            .chain(self.scopes.iter().map(|scope| scope.key(head)));
        let first = keys.next().unwrap_or_else(|| ScopeKey::public(SERVICE));
        let mut classified = Classified::new(first, cost);
        classified.keys.extend(keys);
        classified.read_extensions(request.extensions());
        classified
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scopes").field(&self.scopes).finish()
    }
}

/// The key of all requests if there are no scopes.
const SERVICE: Key = Key::from_static("service");
