use std::sync::Arc;

use axum::body::Bytes;

use super::board::Board;
use super::snapshot::Snapshot;
use crate::app::App;
use tollgate::Timestamp;

/// Looks at the limiter at the beginning of each second, until the server stops; and while somebody
/// looks at the page, makes what is shown there. What else is to be done once a second is `upkeep`.
pub(super) async fn produce(app: Arc<App>, board: Arc<Board>, upkeep: impl Fn()) {
    let mut seen = board.started_at;
    loop {
        // Of a second that has begun since the last look, that is now.
        let second = (seen - Timestamp::UNIX_EPOCH).as_secs();
        let next = Timestamp::from_unix_secs(second + 1);
        tokio::select! {
            biased;
            () = app.stopping.cancelled() => return,
            () = app.limiter.sleep_until(next) => upkeep(),
            () = board.wanted.notified() => {}
        }
        seen = app.limiter.now();
        board.look(&app.limiter, seen);
        let shown = match board.is_watched() {
            true => event(&app, &board).await,
            false => None,
        };
        board.shown.send_replace(shown);
    }
}

/// The snapshot as a server-sent event. It takes a moment where there are a million keys.
async fn event(app: &Arc<App>, board: &Arc<Board>) -> Option<Bytes> {
    let (app, board) = (Arc::clone(app), Arc::clone(board));
    let event = move || {
        let mut event = b"event: snapshot\ndata: ".to_vec();
        serde_json::to_writer(&mut event, &Snapshot::take(&app, &board)).ok()?;
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
    use tollgate::limiter::ManualClock;

    #[tokio::test]
    async fn what_nobody_looks_at_is_kept_up_once_a_second_all_the_same() {
        let clock = ManualClock::new();
        let config = parse("quotas: {k: {rpm: 1}}").unwrap();
        let limiter = config.builder().clock(clock.clone()).build().unwrap();
        let serve = Serve::of(&config).unwrap().clone();
        let listen = serve.listen;
        let app = Arc::new(App::new(config, serve, limiter, Tokens::default(), listen));
        let board = Arc::new(Board::new(&app));
        let kept_up = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&kept_up);
        let upkeep = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let producing = tokio::spawn(produce(Arc::clone(&app), board, upkeep));
        for second in 1..=5 {
            // To where it sleeps.
            tokio::task::yield_now().await;
            clock.advance(Duration::from_secs(1));
            while kept_up.load(Ordering::Relaxed) < second {
                tokio::task::yield_now().await;
            }
        }
        app.stopping.cancel();
        producing.await.unwrap();
        assert_eq!(kept_up.load(Ordering::Relaxed), 5);
    }
}
