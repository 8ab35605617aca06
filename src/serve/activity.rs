use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;

/// What goes on by one connection: who looks at it [now and then](Self::rest) tells whether it may go.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests that have come.
    asked: AtomicU64,
    /// Those that aren't answered to the end.
    open: AtomicUsize,
    /// How often it was looked at.
    looks: AtomicU64,
    /// Answers of more than one piece.
    long: Mutex<Vec<Weak<Piece>>>,
}

/// What became of the last piece of an answer.
#[derive(Debug)]
pub(super) struct Piece {
    /// At which look it was handed out; [`NONE`] if more was asked for since.
    handed: AtomicU64,
}

/// A request that isn't answered to the end.
#[derive(Debug)]
pub(super) struct Open(Arc<Activity>);

/// What a look at a connection has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Busy,
    /// Nothing was asked since the last look, and everything is answered.
    Idle,
    /// A piece of an answer is taken by nobody.
    Stuck,
}

impl Activity {
    /// A request has come.
    pub(super) fn opened(self: &Arc<Self>) -> Open {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// Rests, and then looks. `before` is the number of requests at the look before.
    pub(super) async fn rest(&self, rest: Duration, before: &mut u64, patience: Duration) -> Look {
        sleep(rest).await;
        let look = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = self.asked.load(Ordering::Relaxed);
        let is_quiet = std::mem::replace(before, asked) == asked;
        let most = patience.as_nanos().div_ceil(rest.as_nanos().max(1)) + 1;
        let is_stuck = |piece: Arc<Piece>| {
            let handed = piece.handed.load(Ordering::Relaxed);
            handed != NONE && u128::from(look.saturating_sub(handed)) > most
        };
        let mut long = self.long.lock();
        long.retain(|piece| piece.strong_count() > 0);
        match long.iter().filter_map(Weak::upgrade).any(is_stuck) {
            true => Look::Stuck,
            false if is_quiet && self.open.load(Ordering::Relaxed) == 0 => Look::Idle,
            false => Look::Busy,
        }
    }
}

impl Open {
    /// A piece of an answer, which isn't its last, is handed out.
    pub(super) fn handed(&self, piece: &mut Option<Arc<Piece>>) {
        let look = self.0.looks.load(Ordering::Relaxed);
        let piece = piece.get_or_insert_with(|| {
            let piece = Arc::new(Piece { handed: AtomicU64::new(NONE) });
            self.0.long.lock().push(Arc::downgrade(&piece));
            piece
        });
        piece.handed.store(look, Ordering::Relaxed);
    }
}

impl Piece {
    /// More is asked for.
    pub(super) fn taken(&self) {
        self.handed.store(NONE, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

const NONE: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Duration = Duration::from_secs(10);

    async fn looks<const N: usize>(activity: &Activity, before: &mut u64) -> [Look; N] {
        let mut seen = [Look::Busy; N];
        for look in &mut seen {
            *look = activity.rest(REST, before, REST * 2).await;
        }
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_nothing_was_asked_and_nothing_is_on_its_way() {
        let (activity, mut before) = (Arc::new(Activity::default()), 0);
        let open = activity.opened();
        assert_eq!(looks(&activity, &mut before).await, [Look::Busy; 5]);
        drop(open);
        assert_eq!(looks(&activity, &mut before).await, [Look::Idle]);
        drop(activity.opened());
        assert_eq!(looks(&activity, &mut before).await, [Look::Busy, Look::Idle]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_stuck_when_a_piece_is_taken_by_nobody_and_not_while_there_is_none() {
        let (activity, mut before) = (Arc::new(Activity::default()), 0);
        let (open, mut piece) = (activity.opened(), None);
        open.handed(&mut piece);
        assert_eq!(looks(&activity, &mut before).await, [Look::Busy; 3]);
        piece.as_ref().unwrap().taken();
        assert_eq!(looks(&activity, &mut before).await, [Look::Busy; 9]);
        open.handed(&mut piece);
        let stuck = [Look::Busy, Look::Busy, Look::Busy, Look::Stuck];
        assert_eq!(looks(&activity, &mut before).await, stuck);
        drop(piece);
        assert_eq!(looks(&activity, &mut before).await, [Look::Busy]);
    }
}
