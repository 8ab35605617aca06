use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::app::App;
use super::problem::Problem;
use super::route::Route;

/// Returns the routes of the health checks.
pub(super) fn routes(app: &Arc<App>) -> Router {
    Router::new()
        .route(Route::Health.path(), get(async || "OK"))
        .route(Route::Ready.path(), get(ready))
        .with_state(Arc::clone(app))
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    let unready = |code, detail| {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail);
        problem.retry_after(1).into_response()
    };
    if app.stopping.is_cancelled() {
        unready("stopping", "the server is stopping")
    } else if app.limiter.state().backend_status().is_some_and(|status| !status.connected) {
        unready("away", "the store of the shared limits is unreachable")
    } else if app.limiter.state().is_store_lost() {
        unready("lost", "the file of the store was deleted or replaced while in use")
    } else {
        "OK".into_response()
    }
}
