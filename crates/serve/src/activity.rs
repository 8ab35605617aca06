use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use axum::http::Version;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// What goes on by one connection, for who [watches](super::watch::Watch) it, and what it is asked in
/// turn.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests that have come.
    requests: AtomicU64,
    /// Those that aren't answered to the end.
    open: AtomicUsize,
    /// Whether they come by HTTP/2.
    multiplexed: AtomicBool,
    /// Bytes that its client has taken, and whether some wait for it to.
    written: AtomicU64,
    blocked: AtomicBool,
    /// How often it was looked at.
    looks: AtomicU64,
    /// Answers of more than one piece.
    long: Mutex<Vec<Weak<Piece>>>,
    /// What it is asked: an [`Asked`], as a number.
    asked: AtomicU8,
    waker: AtomicWaker,
}

/// What a connection is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    Nothing,
    /// Answers what was asked, and takes no more.
    ToLeave,
    /// At once.
    ToEnd,
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

impl Activity {
    /// A request has come.
    pub(super) fn opened(self: &Arc<Self>, version: Version) -> Open {
        self.multiplexed.store(version == Version::HTTP_2, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// So many bytes were taken.
    #[inline]
    pub(super) fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether bytes wait to be taken, which is bounded elsewhere.
    pub(super) fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Relaxed);
    }

    /// How many requests have come.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether one of them isn't answered to the end.
    pub(super) fn is_answering(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// How many bytes were taken; none if some wait.
    pub(super) fn written(&self) -> Option<u64> {
        let is_free = !self.blocked.load(Ordering::Relaxed);
        is_free.then(|| self.written.load(Ordering::Relaxed))
    }

    /// Whether an answer may still be on its way that was handed out to its end: HTTP/2 keeps it until its
    /// client makes room.
    pub(super) fn may_keep_answers(&self) -> bool {
        self.multiplexed.load(Ordering::Relaxed)
    }

    /// Whether a piece of an answer was taken by nobody for so many looks; this is one more.
    pub(super) fn is_stuck(&self, patience: u64) -> bool {
        let look = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let is_stuck = |piece: Arc<Piece>| {
            let handed = piece.handed.load(Ordering::Relaxed);
            handed != NONE && look.saturating_sub(handed) > patience
        };
        let mut long = self.long.lock();
        long.retain(|piece| piece.strong_count() > 0);
        long.iter().filter_map(Weak::upgrade).any(is_stuck)
    }

    /// Asks the connection, unless it was asked for more before.
    pub(super) fn ask(&self, asked: Asked) {
        if self.asked.fetch_max(asked as u8, Ordering::AcqRel) < asked as u8 {
            self.waker.wake();
        }
    }

    /// What it is asked; wakes when that becomes more.
    #[inline]
    pub(super) fn asked(&self, waker: &Waker) -> Asked {
        self.waker.register(waker);
        match self.asked.load(Ordering::Acquire) {
            0 => Asked::Nothing,
            1 => Asked::ToLeave,
            _ => Asked::ToEnd,
        }
    }
}

impl Open {
    /// A piece of an answer is handed out that is kept until it is taken.
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
