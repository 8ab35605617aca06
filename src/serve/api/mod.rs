//! Reservations, decisions, figures and quotas as JSON.

use std::sync::Arc;

use axum::Router;

use super::app::App;

/// Its routes.
pub(super) fn routes(app: &Arc<App>) -> Router {
    Router::new().with_state(Arc::clone(app))
}
