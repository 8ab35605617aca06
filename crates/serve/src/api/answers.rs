use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use tollgate::Timestamp;
use tollgate::limiter::Limiter;

/// The answers that were given to requests with an idempotency key, so that who asks again is answered
/// the same. Never so many are kept that they take more than a bounded number of bytes: each is kept for
/// a while that is the same for all, and for longer, if its request has asked for that, only until its
/// room is needed. Where all are younger, one more is refused, rather than one forgotten that may still
/// be asked for.
pub(super) struct Answers {
    kept: Mutex<Kept>,
    /// The shortest time for which an answer is kept.
    kept_for: Duration,
    /// What all answers may take.
    most_bytes: usize,
}

/// A SHA-256.
pub(super) type Digest = [u8; 32];

/// An answer, as it is given again.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: Option<HeaderValue>,
    pub(super) location: Option<HeaderValue>,
    pub(super) body: Bytes,
}

/// What is to be done with a request.
#[derive(Debug)]
pub(super) enum Begun {
    /// It is the first with its key.
    First(Turn),
    /// It was answered.
    Again(Answer),
    /// It is on its way.
    Busy,
    /// Its key belongs to another request.
    Other,
    /// There is no room.
    Full,
}

/// A request on its way. If it ends without an answer that is kept, the next with its key is the first.
#[derive(Debug)]
pub(super) struct Turn {
    answers: Arc<Answers>,
    scope: Digest,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Digest, Entry>,
    /// By the time until which they are kept at most.
    due: BTreeSet<(Timestamp, Digest)>,
    /// By the time since which they are.
    oldest: BTreeSet<(Timestamp, Digest)>,
    bytes: usize,
}

struct Entry {
    request: Digest,
    /// `None` while the request is on its way.
    answer: Option<KeptAnswer>,
}

struct KeptAnswer {
    answer: Answer,
    since: Timestamp,
    until: Timestamp,
}

impl Answers {
    /// Keeps each for so long at least, all of them in about so many bytes.
    pub(super) fn new(kept_for: Duration, most_bytes: usize) -> Self {
        Self { kept: Mutex::default(), kept_for, most_bytes }
    }

    /// What to do with a request: `scope` is whose key it is and for what, `request` what it asks.
    pub(super) fn begin(self: &Arc<Self>, scope: Digest, request: Digest, now: Timestamp) -> Begun {
        let mut kept = self.kept.lock();
        kept.forget(now, &scope);
        if let Some(entry) = kept.entries.get(&scope) {
            return match &entry.answer {
                _ if entry.request != request => Begun::Other,
                None => Begun::Busy,
                Some(kept) => Begun::Again(kept.answer.clone()),
            };
        }
        if !kept.make_room(self.most_bytes, now - self.kept_for) {
            return Begun::Full;
        }
        kept.bytes += PER_ENTRY;
        kept.entries.insert(scope, Entry { request, answer: None });
        Begun::First(Turn { answers: Arc::clone(self), scope })
    }
}

impl Answers {
    /// Once a minute, as long as anybody has them, forgets those whose time is over, though no request
    /// comes that would.
    pub(super) async fn run(answers: Weak<Self>, limiter: Limiter, stopping: CancellationToken) {
        loop {
            let next = limiter.now() + MINUTE;
            tokio::select! {
                () = stopping.cancelled() => return,
                () = limiter.sleep_until(next) => {}
            }
            let Some(answers) = answers.upgrade() else { return };
            while answers.kept.lock().forget_some(limiter.now()) {
                tokio::task::yield_now().await;
            }
        }
    }
}

impl Turn {
    /// Keeps this answer; if there is room, for so long where that is longer than all are.
    pub(super) fn keep(self, answer: Answer, now: Timestamp, at_best: Duration) {
        let until = now + self.answers.kept_for.max(at_best);
        let mut kept = self.answers.kept.lock();
        let kept = &mut *kept;
        if let Some(entry) = kept.entries.get_mut(&self.scope) {
            kept.bytes += answer.body.len();
            kept.due.insert((until, self.scope));
            kept.oldest.insert((now, self.scope));
            entry.answer = Some(KeptAnswer { answer, since: now, until });
        }
    }
}

impl Drop for Turn {
    /// After [`keep`](Self::keep) there is nothing left to do.
    fn drop(&mut self) {
        let mut kept = self.answers.kept.lock();
        let open = |entry: &Entry| entry.answer.is_none();
        if kept.entries.get(&self.scope).is_some_and(open) {
            kept.remove(&self.scope);
        }
    }
}

impl Kept {
    /// Forgets the answer of this scope if its time is over, and some more of which that is so: never
    /// all at once, since somebody waits for the lock.
    fn forget(&mut self, now: Timestamp, scope: &Digest) {
        let kept = self.entries.get(scope).and_then(|entry| entry.answer.as_ref());
        if kept.is_some_and(|kept| kept.until <= now) {
            self.remove(scope);
        }
        self.forget_some(now);
    }

    /// Forgets some of which the time is over; whether there may be more.
    fn forget_some(&mut self, now: Timestamp) -> bool {
        for _ in 0..MOST_AT_ONCE {
            match self.due.first() {
                Some(&(until, scope)) if until <= now => self.remove(&scope),
                _ => return false,
            }
        }
        true
    }

    /// Whether there is room for one more; of the answers that are kept since this time or before, the
    /// oldest make it.
    fn make_room(&mut self, most_bytes: usize, since: Timestamp) -> bool {
        while self.bytes >= most_bytes {
            match self.oldest.first() {
                Some(&(at, scope)) if at <= since => self.remove(&scope),
                _ => return false,
            }
        }
        true
    }

    fn remove(&mut self, scope: &Digest) {
        let Some(entry) = self.entries.remove(scope) else { return };
        self.bytes -= PER_ENTRY;
        if let Some(KeptAnswer { answer, since, until }) = entry.answer {
            self.bytes -= answer.body.len();
            self.due.remove(&(until, *scope));
            self.oldest.remove(&(since, *scope));
        }
    }
}

impl fmt::Debug for Answers {
    /// Without them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept.lock().entries.len();
        f.debug_struct("Answers").field("kept", &kept).finish_non_exhaustive()
    }
}

/// What one takes besides its body, about, in bytes.
const PER_ENTRY: usize = 400;

const MINUTE: Duration = Duration::from_secs(60);

/// How many are forgotten under one lock.
const MOST_AT_ONCE: usize = 1_000;

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use tollgate::limiter::ManualClock;

    fn digest(n: u8) -> Digest {
        [n; 32]
    }

    fn answer() -> Answer {
        let body = Bytes::from_static(&[0; 600]);
        Answer { status: StatusCode::OK, content_type: None, location: None, body }
    }

    /// Does a request, and keeps its answer; whether there was room.
    fn done(answers: &Arc<Answers>, n: u8, second: u64, at_best: u64) -> bool {
        let now = Timestamp::from_unix_secs(second);
        match answers.begin(digest(n), digest(0), now) {
            Begun::First(turn) => {
                turn.keep(answer(), now, Duration::from_secs(at_best));
                true
            }
            Begun::Full => false,
            begun => panic!("{begun:?}"),
        }
    }

    fn is_known(answers: &Arc<Answers>, n: u8, second: u64) -> bool {
        let now = Timestamp::from_unix_secs(second);
        matches!(answers.begin(digest(n), digest(0), now), Begun::Again(_))
    }

    #[test]
    fn an_answer_kept_for_long_makes_room_once_it_was_kept_as_long_as_any_is() {
        // Room for three.
        let answers = Arc::new(Answers::new(MINUTE, 3_000));
        for n in 1..=3 {
            assert!(done(&answers, n, u64::from(n), 3_600));
        }
        assert!(!done(&answers, 4, 60, 3_600));
        assert!(is_known(&answers, 1, 60));
        // The oldest goes first, and only as many as must.
        assert!(done(&answers, 4, 61, 3_600));
        let known = |n| is_known(&answers, n, 61);
        assert_eq!([1, 2, 3, 4].map(known), [false, true, true, true]);
        assert!(!is_known(&answers, 2, 3_602));
    }

    #[test]
    fn what_was_forgotten_takes_no_room() {
        let answers = Arc::new(Answers::new(MINUTE, 3_000));
        for round in 1..9 {
            for n in 1..=3 {
                assert!(done(&answers, n, round * 60, 0));
            }
            assert!(!done(&answers, 4, round * 60, 0));
        }
        assert!(!is_known(&answers, 1, 9 * 60));
        let kept = answers.kept.lock();
        assert_eq!((kept.bytes, kept.entries.len()), (0, 0));
        assert!(kept.due.is_empty() && kept.oldest.is_empty());
    }
    #[tokio::test]
    async fn thousands_whose_time_is_over_go_though_no_request_comes() {
        let clock = ManualClock::new();
        let limiter = Limiter::builder().clock(clock.clone()).build().unwrap();
        let answers = Arc::new(Answers::new(MINUTE, usize::MAX));
        let now = limiter.now();
        for n in 0..2_500_u32 {
            let scope: Digest = Sha256::digest(n.to_be_bytes()).into();
            let Begun::First(turn) = answers.begin(scope, digest(0), now) else { panic!("{n}") };
            turn.keep(answer(), now, Duration::ZERO);
        }
        let (weak, stopping) = (Arc::downgrade(&answers), CancellationToken::new());
        let task = tokio::spawn(Answers::run(weak, limiter, stopping.clone()));
        let kept = || answers.kept.lock().bytes;
        tokio::task::yield_now().await;
        assert!(kept() > 2_500 * 600);
        clock.advance(Duration::from_secs(60));
        while kept() > 0 {
            tokio::task::yield_now().await;
        }
        stopping.cancel();
        task.await.unwrap();
        let kept = answers.kept.lock();
        assert_eq!([kept.entries.len(), kept.due.len(), kept.oldest.len()], [0; 3]);
    }
}
