//! The live page, the events that it shows, and figures for Prometheus.
//!
//! One task looks at the limiter once a second ([`produce`]): it keeps a [`History`] of what was
//! answered, and while somebody looks at the page it makes one [`Snapshot`] for all of them, which
//! goes out as a server-sent event. Requests pay nothing for it: the limiter counts under locks that it
//! holds anyway, and only what is [rare](News) is listened to.
//!
//! It changes nothing, and shows no more than the busiest keys.
//!
//! [`produce`]: produce::produce
//! [`History`]: history::History
//! [`Snapshot`]: snapshot::Snapshot
//! [`News`]: news::News

mod board;
mod figures;
mod history;
mod news;
mod page;
mod produce;
mod requests;
mod snapshot;
mod stream;
mod upstreams;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use self::board::Board;
use self::figures::Figures;
use super::app::App;
use super::auth;
use super::compressed::compressed;
use super::rate;

pub(super) use requests::Requests;

/// Its routes. To be called within a Tokio runtime: what they show is collected by a task.
pub(super) fn routes(app: &Arc<App>) -> Router {
    let board = Arc::new(Board::new(app));
    let figures = Arc::new(Figures::new(app, &board));
    let upkeep = figures.upkeep();
    tokio::spawn(produce::produce(Arc::clone(app), Arc::clone(&board), upkeep));
    let seen = Router::new().route("/live/events", get(stream::events)).with_state(board);
    let scraped = Router::new()
        .route("/metrics", get(figures::metrics))
        .with_state(figures)
        .route_layer(auth::admin_read(app).told_as(rate::told))
        .layer(compressed());
    let seen = seen.route_layer(auth::admin_read(app));
    Router::new().route("/", get(page::page)).layer(compressed()).merge(seen).merge(scraped)
}
