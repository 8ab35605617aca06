use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::response::{Parts, Response};
use http_body::Body;

use super::body::RespondBody;
use super::fields::{Fields, levels};
use super::policies::PolicyCache;
use crate::middleware::forwarding_body::is_empty;
use crate::middleware::{ActualCost, Observe, ResponseGuard};
use crate::quota::Cost;

/// The [`Observe`] of server mode, which adds the rate-limit header fields to the responses of the inner
/// service.
#[derive(Clone, Default)]
pub struct Reply {
    charge: Option<Arc<ChargeFn>>,
    pub(super) policies: Arc<PolicyCache>,
}

type ChargeFn = dyn Fn(&Parts) -> Option<Cost> + Send + Sync;

impl Reply {
    pub(super) fn with_charge(
        charge: impl Fn(&Parts) -> Option<Cost> + Send + Sync + 'static,
    ) -> Self {
        Self { charge: Some(Arc::new(charge)), ..Self::default() }
    }
}

impl<B: Body<Data = Bytes>> Observe<Response<B>> for Reply {
    type Observed = Response<RespondBody<B>>;

    fn observe(&self, response: Response<B>, mut guard: ResponseGuard) -> Self::Observed {
        let (mut parts, body) = response.into_parts();
        if let Some(charge) = self.charge.as_ref().and_then(|charge| charge(&parts)) {
            guard.charged(charge);
        }
        let is_upgrade = parts.status == StatusCode::SWITCHING_PROTOCOLS;
        if let Some(charge) = parts.extensions.get::<ActualCost>().filter(|_| !is_upgrade) {
            guard.charged_later(charge.clone());
        }
        let keys = &guard.keys;
        let levels = levels(guard.limiter(), keys);
        Fields::new(keys, &levels, Some(&self.policies)).append(&mut parts.headers);
        let guard = if is_upgrade {
            // The connection goes on without a body.
            ActualCost::in_extensions(&mut parts.extensions).hold(guard);
            None
        } else {
            // A caller may never poll an empty body.
            (!is_empty(&body)).then_some(guard)
        };
        Response::from_parts(parts, RespondBody::inner(body, guard))
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}
