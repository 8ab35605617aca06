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
        return unready("stopping", "the server is stopping");
    }
    let state = app.limiter.state();
    if state.is_store_lost() {
        return unready("lost", "the file of the store was deleted or replaced while in use");
    }
    match state.backend_status() {
        Some(status) if !status.connected && !status.admits_alone => {
            unready("away", "the store of the shared limits is unreachable")
        }
        Some(status) if !status.connected => WITHOUT_STORE.into_response(),
        _ => "OK".into_response(),
    }
}

/// The body while the store is unreachable in a mode that admits requests without it.
const WITHOUT_STORE: &str = "OK, without the store of the shared limits, which is unreachable: requests \
                             are decided by on_failure";
