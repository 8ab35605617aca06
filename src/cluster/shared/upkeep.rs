use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;

use super::core::{Core, micros};
use super::failure::Failure;
use super::members;
use super::script::{Id, Verb, Verdict};
use crate::limiter::{Clock, Reservation};

impl Core {
    /// Renews what is open for long, and takes back the places of those who wait no more.
    pub(super) async fn upkeep(self: Arc<Self>) {
        let ttl = self.store.settings.ttl;
        loop {
            tokio::time::sleep(OFTEN).await;
            let abandoned = self.book.lock().abandoned();
            for (reservation, id) in abandoned {
                let groups = self.groups(&reservation, &reservation.cost);
                tokio::spawn(self.told(Verb::Release { unsure: false }, id, groups));
            }
            if !self.store.way.is_there() {
                continue;
            }
            let third = micros(ttl / 3).saturating_mul(1_000);
            let before = self.store.ticks.now().saturating_sub(third);
            let due = self.book.lock().due(before);
            join_all(due.iter().map(|(reservation, id)| self.renew(reservation, *id))).await;
        }
    }

    async fn renew(&self, reservation: &Arc<Reservation>, id: Id) {
        let now = self.store.ticks.now();
        let ttl = micros(self.store.settings.ttl);
        for group in self.groups(reservation, &reservation.cost) {
            for restores in [false, true] {
                let verb = Verb::Renew { ttl, restores };
                match self.aside(verb, id, &group.pieces).await {
                    Ok(answer) if answer.verdict == Verdict::Unknown => {}
                    Ok(_) => break,
                    Err(failure) => return self.unheard(&failure),
                }
                // The store has lost it, if it hasn't ended here.
                if !self.book.lock().is_held(reservation, id) {
                    return;
                }
            }
        }
        self.book.lock().renewed(reservation, id, now);
    }

    /// Waits for a moment until the store knows how all requests have ended, and takes its leave.
    pub(super) async fn close(&self) {
        let told = async {
            self.store.way.trouble.notify_one();
            while self.has_to_tell() {
                tokio::time::sleep(LOOK).await;
            }
            if let Ok((mut link, _)) = self.store.way.link(false).await {
                let name = self.store.names.members();
                let left = link.query::<u64>(&members::leave(&name, self.store.process)).await;
                tracing::debug!(left = left.is_ok(), "shared limits closed");
            }
        };
        let _ = tokio::time::timeout(FAREWELL, told).await;
    }

    /// Whether there is something that the store doesn't know yet.
    fn has_to_tell(&self) -> bool {
        let owes = self.fallback.lock().owes();
        // What is owed goes there, and from there it is told.
        let is_empty = self.outbox.lock().is_empty();
        owes || !is_empty || self.store.counters.unacknowledged.now() > 0
    }

    /// A call has no answer. Unless that says nothing of the next, decisions are made without the
    /// store from now on, until it is tested.
    pub(super) fn failed(&self, failure: &Failure) {
        if *failure == Failure::Late {
            self.store.counters.timeouts.add(1);
        }
        if failure.is_of_this_call() {
            self.say(failure, "the shared store failed to execute a call");
        } else if !matches!(failure, Failure::Away | Failure::GivenUp) {
            self.lost(failure);
        }
    }

    /// The same of a call that nobody waits for: it may be late because there are many. Whoever keeps
    /// the connection sees whether the store is there.
    pub(super) fn unheard(&self, failure: &Failure) {
        match failure {
            Failure::Late => self.store.way.trouble.notify_one(),
            _ => self.failed(failure),
        }
    }

    pub(super) fn lost(&self, failure: &Failure) {
        if self.store.way.lost(self.store.clock.now(), failure.reason()) {
            self.store.counters.outages.add(1);
            self.say(failure, "the shared store is unavailable");
        }
    }

    /// Logs it, unless something was only just logged.
    fn say(&self, failure: &Failure, what: &str) {
        let (now, last) = (self.store.ticks.now(), self.said.load(Ordering::Relaxed));
        if last == 0 || now.saturating_sub(last) > SAID_AGAIN {
            self.said.store(now, Ordering::Relaxed);
            let (reason, on_failure) = (failure.reason(), self.store.settings.on_failure);
            tracing::warn!(reason, ?on_failure, "{what}");
        }
    }

    /// The store answers: it is told what was let in without it, and then it decides again.
    ///
    /// # Errors
    /// [`Failure`], if it doesn't take that.
    pub(super) async fn returned(self: &Arc<Self>) -> Result<(), Failure> {
        self.charge_owed().await?;
        if let Some(away) = self.store.way.returned() {
            self.fallback.lock().finish();
            let millis = self.store.clock.now().saturating_sub(away.since) / 1_000_000;
            let degraded = self.store.counters.degraded();
            let reason = &*away.reason;
            tracing::info!(millis, reason, degraded, "the shared store is available again");
        }
        Ok(())
    }
}

const OFTEN: Duration = Duration::from_millis(100);
/// A store that goes away again and again is spoken of this often, in nanoseconds.
const SAID_AGAIN: u64 = 10_000_000_000;
const LOOK: Duration = Duration::from_millis(2);
/// For so long a limiter that ends waits for a store that doesn't answer.
const FAREWELL: Duration = Duration::from_secs(1);
