use std::sync::Weak;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use tollgate::limiter::Limiter;

/// Once a minute, until the server stops, forgets keys that are as good as new and what was given back
/// long ago: what a flood has left behind goes, though nothing new comes. Aside from what answers
/// requests.
pub(super) async fn run(app: Weak<App>, limiter: Limiter, stopping: CancellationToken) {
    loop {
        let next = limiter.now() + MINUTE;
        tokio::select! {
            () = stopping.cancelled() => return,
            () = limiter.sleep_until(next) => {}
        }
        let Some(app) = app.upgrade() else { return };
        // It only fails as the process ends.
        let _ = tokio::task::spawn_blocking(move || {
            app.limiter.state().prune();
            app.rate.grants.sweep(app.limiter.now());
        })
        .await;
    }
}

const MINUTE: Duration = Duration::from_secs(60);
