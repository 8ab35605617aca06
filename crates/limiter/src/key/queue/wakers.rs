use std::task::Waker;

use smallvec::SmallVec;

/// Wakers to be called, or dropped, after all locks are released: both may run any code.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    due: SmallVec<[Waker; 2]>,
    spent: SmallVec<[Waker; 2]>,
}

impl Wakers {
    pub(crate) fn wake(&mut self, due: impl IntoIterator<Item = Waker>) {
        due.into_iter().for_each(|waker| self.due.push(waker));
    }

    pub(crate) fn drop_later(&mut self, spent: Option<Waker>) {
        if let Some(waker) = spent {
            self.spent.push(waker);
        }
    }

    /// Calls all wakers. Without a lock.
    pub(crate) fn call(self) {
        self.due.into_iter().for_each(Waker::wake);
    }
}

/// Replaces a waker by one of another task. Returns the old one.
pub(super) fn replace(old: &mut Waker, new: &Waker) -> Option<Waker> {
    (!old.will_wake(new)).then(|| std::mem::replace(old, new.clone()))
}
