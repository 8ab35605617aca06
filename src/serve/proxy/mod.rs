//! The proxy in front of providers.

use std::sync::Arc;

use axum::Router;

use super::app::App;

/// Its routes.
pub(super) fn routes(app: &Arc<App>) -> Router {
    Router::new().with_state(Arc::clone(app))
}
