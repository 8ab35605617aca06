use std::sync::{Arc, Weak};
use std::time::Duration;

use super::activity::{Activity, Asked};
use super::config::Bounds;

/// Looks at all connections now and then: who has asked for nothing for `bounds.head_timeout` is asked to
/// leave, and is cut off if it doesn't though all that was answered is taken; so is who takes nothing of an
/// answer for `bounds.body_timeout`.
#[derive(Debug)]
pub(super) struct Watch {
    all: Vec<Watched>,
    /// How many there are when those that have ended are taken out.
    most: usize,
    pause: Duration,
    /// For so many looks a piece of an answer may lie there.
    patience: u64,
}

/// A connection, which may have ended.
#[derive(Debug)]
struct Watched {
    activity: Weak<Activity>,
    /// Requests that had come when it was last looked at.
    requests: u64,
    /// For so many looks nothing was asked, and nothing on its way.
    quiet: u64,
    /// Bytes that were taken when it was last looked at, and for how many looks no more were since it was
    /// asked to leave.
    written: u64,
    still: u64,
}

impl Watch {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let pause = (bounds.head_timeout / LOOKS).max(Duration::from_millis(1));
        let patience = bounds.body_timeout.as_nanos().div_ceil(pause.as_nanos());
        let patience = u64::try_from(patience).unwrap_or(u64::MAX).saturating_add(1);
        Self { all: Vec::new(), most: 0, pause, patience }
    }

    /// The time from one look to the next.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    pub(super) fn add(&mut self, connection: &Arc<Activity>) {
        if self.all.len() >= self.most {
            self.all.retain(|watched| watched.activity.strong_count() > 0);
            self.most = (2 * self.all.len()).max(FEW);
        }
        let activity = Arc::downgrade(connection);
        self.all.push(Watched { activity, requests: 0, quiet: 0, written: 0, still: 0 });
    }

    /// Asks all of them.
    pub(super) fn ask(&self, asked: Asked) {
        let connections = self.all.iter().filter_map(|watched| watched.activity.upgrade());
        connections.for_each(|connection| connection.ask(asked));
    }

    /// Looks at all of them.
    pub(super) fn look(&mut self) {
        let patience = self.patience;
        self.all.retain_mut(|watched| match watched.activity.upgrade() {
            Some(activity) => {
                watched.look(&activity, patience);
                true
            }
            None => false,
        });
    }
}

impl Watched {
    fn look(&mut self, activity: &Activity, patience: u64) {
        let requests = activity.requests();
        let is_quiet = !activity.is_answering() && requests == self.requests;
        self.requests = requests;
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        if activity.is_stuck(patience) {
            return activity.ask(Asked::ToEnd);
        }
        if self.quiet <= u64::from(LOOKS) {
            self.still = 0;
            return;
        }
        activity.ask(Asked::ToLeave);
        self.still = if self.is_moving(activity.written()) { 0 } else { self.still + 1 };
        if self.still > if activity.may_keep_answers() { patience } else { 1 } {
            activity.ask(Asked::ToEnd);
        }
    }

    /// Whether its client takes more than what only shows that it is there.
    fn is_moving(&mut self, written: Option<u64>) -> bool {
        let Some(written) = written else { return true };
        written - std::mem::replace(&mut self.written, written) >= LITTLE
    }
}

/// In the time that a request may take to come.
const LOOKS: u32 = 4;

/// In bytes: a few frames that say nothing but that there is a connection.
const LITTLE: u64 = 128;

/// So few aren't worth looking for those that have ended.
const FEW: usize = 64;

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use axum::http::Version;

    use super::*;
    use crate::{Serve, parse};

    fn watch() -> Watch {
        let text = "serve: {bounds: {head_timeout: 4s, body_timeout: 2s}}";
        Watch::new(&Serve::of(&parse(text).unwrap()).unwrap().bounds)
    }

    /// What is asked after each of the next looks.
    fn looks<const N: usize>(watch: &mut Watch, activity: &Activity) -> [Asked; N] {
        [(); N].map(|()| {
            watch.look();
            activity.asked(Waker::noop())
        })
    }

    #[test]
    fn who_asks_for_nothing_is_asked_to_leave_and_then_cut_off() {
        let (mut watch, activity) = (watch(), Arc::new(Activity::default()));
        assert_eq!(watch.pause(), Duration::from_secs(1));
        watch.add(&activity);
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 4]);
        let open = activity.opened(Version::HTTP_11);
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 9]);
        drop(open);
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 4]);
        drop(activity.opened(Version::HTTP_11));
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 5]);
        assert_eq!(looks(&mut watch, &activity), [Asked::ToLeave, Asked::ToEnd, Asked::ToEnd]);
    }

    #[test]
    fn who_takes_what_was_answered_is_not_cut_off() {
        let (mut watch, activity) = (watch(), Arc::new(Activity::default()));
        watch.add(&activity);
        drop(activity.opened(Version::HTTP_11));
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 5]);
        for _ in 0..9 {
            activity.wrote(1_000);
            assert_eq!(looks(&mut watch, &activity), [Asked::ToLeave; 2]);
        }
        activity.set_blocked(true);
        assert_eq!(looks(&mut watch, &activity), [Asked::ToLeave; 9]);
        activity.set_blocked(false);
        assert_eq!(looks(&mut watch, &activity), [Asked::ToLeave, Asked::ToEnd]);
    }

    #[test]
    fn by_http2_it_has_the_time_for_that_but_not_by_signs_of_life() {
        let (mut watch, activity) = (watch(), Arc::new(Activity::default()));
        watch.add(&activity);
        drop(activity.opened(Version::HTTP_2));
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 5]);
        for _ in 0..3 {
            assert_eq!(looks(&mut watch, &activity), [Asked::ToLeave]);
            activity.wrote(17);
        }
        assert_eq!(looks(&mut watch, &activity), [Asked::ToEnd]);
    }

    #[test]
    fn who_takes_nothing_of_an_answer_is_cut_off_and_not_while_there_is_none() {
        let (mut watch, activity) = (watch(), Arc::new(Activity::default()));
        watch.add(&activity);
        let (open, mut piece) = (activity.opened(Version::HTTP_2), None);
        open.handed(&mut piece);
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 3]);
        piece.as_ref().unwrap().taken();
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 9]);
        open.handed(&mut piece);
        assert_eq!(looks(&mut watch, &activity), [Asked::Nothing; 3]);
        assert_eq!(looks(&mut watch, &activity), [Asked::ToEnd]);
    }

    #[test]
    fn connections_that_have_ended_are_not_kept() {
        let mut watch = watch();
        let kept = [(); 100].map(|()| Arc::new(Activity::default()));
        kept.iter().for_each(|activity| watch.add(activity));
        for _ in 0..10_000 {
            watch.add(&Arc::new(Activity::default()));
            assert!(watch.all.len() <= 2 * (kept.len() + 1));
        }
        watch.ask(Asked::ToLeave);
        assert!(kept.iter().all(|activity| activity.asked(Waker::noop()) == Asked::ToLeave));
    }
}
