//! The rate-limit service, as GoCC's clients ask it.

use std::sync::Arc;

use axum::Router;

use super::app::App;

/// Its routes.
pub(super) fn routes(app: &Arc<App>) -> Router {
    Router::new().with_state(Arc::clone(app))
}
