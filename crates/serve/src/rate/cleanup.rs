use std::sync::Weak;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use paceline::limiter::Limiter;
use paceline_limiter::seam;

/// Drops idle keys and expired records of returned grants once a minute until the server stops, so that
/// a flood of keys does not occupy memory permanently. The work runs on a blocking thread.
pub(super) async fn run(app: Weak<App>, limiter: Limiter, stopping: CancellationToken) {
    loop {
        let next = limiter.now() + MINUTE;
        tokio::select! {
            () = stopping.cancelled() => return,
            () = seam::sleep_until(&limiter, next) => {}
        }
        let Some(app) = app.upgrade() else { return };
        // The task is cancelled only when the process ends.
        let _ = tokio::task::spawn_blocking(move || {
            app.limiter.state().prune();
            app.rate.grants.sweep(app.limiter.now());
        })
        .await;
    }
}

const MINUTE: Duration = Duration::from_secs(60);
