use std::sync::Arc;

use axum::body::Bytes;

use super::live_state::LiveState;
use super::snapshot::Snapshot;
use crate::app::App;
use paceline::Timestamp;
use paceline_limiter::seam;

/// Observes the limiter at the start of each second until the server stops, and publishes snapshots
/// while clients are connected. `upkeep` runs once a second.
pub(super) async fn publish(app: Arc<App>, state: Arc<LiveState>, upkeep: impl Fn()) {
    let mut observed_at = state.started_at;
    loop {
        // In the past, if that second has already begun.
        let second = (observed_at - Timestamp::UNIX_EPOCH).as_secs();
        let next = Timestamp::from_unix_secs(second + 1);
        tokio::select! {
            biased;
            () = app.stopping.cancelled() => return,
            () = seam::sleep_until(&app.limiter, next) => upkeep(),
            () = state.snapshot_wanted.notified() => {}
        }
        observed_at = app.limiter.now();
        state.observe(&app.limiter, observed_at);
        let snapshot = match state.has_clients() {
            true => event(&app, &state).await,
            false => None,
        };
        state.snapshot.send_replace(snapshot);
    }
}

/// Returns a snapshot as a server-sent event. A snapshot of a million keys takes long, so it is taken on a
/// blocking thread.
async fn event(app: &Arc<App>, state: &Arc<LiveState>) -> Option<Bytes> {
    let (app, state) = (Arc::clone(app), Arc::clone(state));
    let event = move || {
        let mut event = b"event: snapshot\ndata: ".to_vec();
        serde_json::to_writer(&mut event, &Snapshot::take(&app, &state)).ok()?;
        event.extend_from_slice(b"\n\n");
        Some(Bytes::from(event))
    };
    tokio::task::spawn_blocking(event).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::{Serve, Tokens, parse};
    use paceline::limiter::ManualClock;

    #[tokio::test]
    async fn upkeep_runs_each_second_without_clients() {
        let clock = ManualClock::new();
        let config = parse("quotas: {k: {rpm: 1}}").unwrap();
        let limiter = config.builder().clock(clock.clone()).build().unwrap();
        let serve = Serve::of(&config).unwrap().clone();
        let listen = serve.listen;
        let app = Arc::new(App::new(config, serve, limiter, Tokens::default(), listen));
        let state = Arc::new(LiveState::new(&app));
        let upkeeps = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&upkeeps);
        let upkeep = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let publishing = tokio::spawn(publish(Arc::clone(&app), state, upkeep));
        for second in 1..=5 {
            // Let the task sleep.
            tokio::task::yield_now().await;
            clock.advance(Duration::from_secs(1));
            while upkeeps.load(Ordering::Relaxed) < second {
                tokio::task::yield_now().await;
            }
        }
        app.stopping.cancel();
        publishing.await.unwrap();
        assert_eq!(upkeeps.load(Ordering::Relaxed), 5);
    }
}
