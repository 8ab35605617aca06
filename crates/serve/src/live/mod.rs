//! The live page, its event stream, and metrics for Prometheus.
//!
//! A task observes the limiter once a second ([`publish`]): it records a [`History`] of decisions, and
//! while clients are connected it takes one [`Snapshot`] for all of them, which is sent as a
//! server-sent event. Requests do no extra work for it: the limiter counts under locks that it holds
//! anyway, and only [rare events](RecentEvents) have a subscriber.
//!
//! The page is read-only, and shows only the busiest keys.
//!
//! [`publish`]: publisher::publish
//! [`History`]: history::History
//! [`Snapshot`]: snapshot::Snapshot
//! [`RecentEvents`]: recent_events::RecentEvents

mod event_stream;
mod history;
mod live_state;
mod metrics;
mod page;
mod provider_traffic;
mod publisher;
mod recent_events;
pub(super) mod request_counts;
mod snapshot;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;

use self::live_state::LiveState;
use self::metrics::MetricsExporter;
use super::answer;
use super::app::App;
use super::auth;
use super::rate;
use super::route::Route;

/// Returns the routes. Must be called within a Tokio runtime, because it spawns the publisher.
pub(super) fn routes(app: &Arc<App>) -> Router {
    let state = Arc::new(LiveState::new(app));
    let exporter = Arc::new(MetricsExporter::new(app, &state));
    let upkeep = exporter.upkeep();
    tokio::spawn(publisher::publish(Arc::clone(app), Arc::clone(&state), upkeep));
    let events =
        Router::new().route(Route::LiveEvents.path(), get(event_stream::get)).with_state(state);
    let metrics = Router::new()
        .route(Route::Metrics.path(), get(metrics::get))
        .with_state(exporter)
        .route_layer(auth::admin_read(app).with_error_format(rate::format_error))
        .layer(from_fn_with_state(Arc::clone(app), answer::complete));
    let events = events.route_layer(auth::admin_read(app));
    Router::new().route(Route::Page.path(), get(page::get)).merge(events).merge(metrics)
}
