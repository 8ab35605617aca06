use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Clock, ManualClock, Sleep};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

/// A clock that jumps to the time of the earliest timer while it [runs](Self::run). Without timers
/// it does not advance, so it never hides a missing wake-up.
#[derive(Debug, Clone, Default)]
pub(crate) struct JumpingClock(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    passed: Duration,
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    next: u64,
    is_stopped: bool,
}

impl JumpingClock {
    /// Advances the time while `during` runs.
    pub(crate) fn run(&self, during: impl FnOnce()) {
        let clock = self.clone();
        let running = thread::spawn(move || while clock.jump() {});
        during();
        self.0.0.lock().unwrap().is_stopped = true;
        self.0.1.notify_one();
        running.join().unwrap();
    }

    fn jump(&self) -> bool {
        let (state, changed) = &*self.0;
        let is_idle = |state: &mut State| state.sleepers.is_empty() && !state.is_stopped;
        let mut state = changed.wait_while(state.lock().unwrap(), is_idle).unwrap();
        let Some(((time, _), waker)) = state.sleepers.pop_first() else { return false };
        state.passed = state.passed.max(time - ManualClock::START);
        drop(state);
        waker.wake();
        true
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        ManualClock::START + self.0.0.lock().unwrap().passed
    }

    fn sleep_until(&self, time: Timestamp) -> Sleep {
        let mut state = self.0.0.lock().unwrap();
        state.next += 1;
        Box::pin(JumpingSleep { clock: self.clone(), sleeper: (time, state.next) })
    }
}

struct JumpingSleep {
    clock: JumpingClock,
    sleeper: (Timestamp, u64),
}

impl Future for JumpingSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (state, changed) = &*self.clock.0;
        let mut state = state.lock().unwrap();
        if ManualClock::START + state.passed >= self.sleeper.0 {
            return Poll::Ready(());
        }
        let _old = state.sleepers.insert(self.sleeper, cx.waker().clone());
        drop(state);
        changed.notify_one();
        Poll::Pending
    }
}

impl Drop for JumpingSleep {
    fn drop(&mut self) {
        let woken = self.clock.0.0.lock().unwrap().sleepers.remove(&self.sleeper);
        drop(woken);
    }
}
