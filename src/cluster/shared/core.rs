use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::book::{Book, Stage};
use super::failure::Failure;
use super::fallback::Fallback;
use super::lease::Leases;
use super::on_failure::OnFailure;
use super::outbox::{AT_ONCE, Outbox};
use super::piece::{Group, Piece};
use super::script::{Id, InTime, Verb, Verdict, View};
use super::store::Store;
use crate::engine::{Shortfall, Wait};
use crate::limiter::{Clock, Reservation, Unmet};
use crate::quota::{Cost, Dimension};

/// Decides: by the store, and without it by the mode of failure.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) store: Store,
    pub(super) book: Mutex<Book>,
    pub(super) fallback: Mutex<Fallback>,
    pub(super) outbox: Mutex<Outbox>,
    /// Of calls that nobody waits for, so many are on their way at once.
    pub(super) turns: Semaphore,
    pub(super) leases: Leases,
    /// When it was last said that the store is away.
    pub(super) said: AtomicU64,
}

/// A decision that is asked of the store.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) reservation: Arc<Reservation>,
    pub(super) id: Id,
    /// Whether it is asked again where it is refused.
    pub(super) waits: bool,
    /// Whether it was refused before, and has its place among those who wait.
    pub(super) queues: bool,
    /// By the store's `ticks`.
    pub(super) asked_at: u64,
}

impl Core {
    pub(super) fn new(store: Store) -> Self {
        let lease = micros(store.settings.lease).saturating_mul(1_000);
        Self {
            store,
            leases: Leases::new(lease),
            book: Mutex::default(),
            fallback: Mutex::default(),
            outbox: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
            said: AtomicU64::new(0),
        }
    }

    pub(super) fn question(&self, reservation: &Arc<Reservation>, waits: bool) -> Question {
        let (id, queues) = self.book.lock().ask(reservation, || self.store.id());
        let reservation = Arc::clone(reservation);
        Question { reservation, id, waits, queues, asked_at: self.store.ticks.now() }
    }

    /// Asks the store, and decides without it where it has no answer in time.
    pub(super) async fn reserve(self: Arc<Self>, question: Question) -> Result<(), Unmet> {
        let Question { reservation, id, waits, .. } = &question;
        let by_lease = self.by_lease(&question).await;
        let asked = match by_lease {
            Ok(true) => return Ok(()),
            Ok(false) => self.ask(&question).await,
            Err(failure) => Err(failure),
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(failure) => {
                self.failed(&failure);
                return match self.give_up(reservation, *id) {
                    true => self.without(reservation, *waits),
                    false => Err(Unmet::Full(Wait::Unknown)),
                };
            }
        };
        let stage = match answer {
            Ok(()) => Some(Stage::Held { renewed: self.store.ticks.now() }),
            Err(_) => waits.then_some(Stage::Refused),
        };
        if !self.store.way.is_away() {
            self.fallback.lock().decided(reservation);
        }
        // If somebody has given it up meanwhile, the store has been told so.
        self.book.lock().conclude(reservation, *id, stage);
        self.store.counters.decided.add(1);
        answer
    }

    /// Nobody waits for the answer any more, if there is none yet: what the store may have done is
    /// undone. Must be called on the worker's runtime.
    pub(super) fn give_up(self: &Arc<Self>, reservation: &Arc<Reservation>, id: Id) -> bool {
        let given_up = self.book.lock().conclude(reservation, id, None);
        if given_up {
            let groups = self.groups(reservation, &reservation.cost);
            tokio::spawn(self.told(Verb::Release { unsure: true }, id, groups));
        }
        given_up
    }

    /// A decision without the store.
    pub(super) fn without(&self, reservation: &Arc<Reservation>, waits: bool) -> Result<(), Unmet> {
        let counters = &self.store.counters;
        match self.store.settings.on_failure {
            OnFailure::Closed => {
                counters.closed.add(1);
                Err(self.away(SOON))
            }
            OnFailure::Open => {
                counters.open.add(1);
                self.let_in(&mut self.fallback.lock(), reservation);
                Ok(())
            }
            OnFailure::LocalShare => {
                counters.local.add(1);
                self.by_share(reservation).map_err(|unmet| self.until_back(unmet, waits))
            }
        }
    }

    fn by_share(&self, reservation: &Arc<Reservation>) -> Result<(), Unmet> {
        let (store, now) = (&self.store, self.store.clock.now());
        let members = store.counters.members.now().max(1);
        let mut fallback = self.fallback.lock();
        fallback.reserve(reservation, (members, now), |reserved| {
            let times = (store.ticks.now(), now);
            let slot = store.slot(&reserved.key);
            store.views.lock().buckets((&reserved.key, slot), &reserved.rules, times)
        })?;
        self.let_in(&mut fallback, reservation);
        Ok(())
    }

    fn let_in(&self, fallback: &mut Fallback, reservation: &Arc<Reservation>) {
        fallback.owe(reservation);
        let stage = Stage::LetIn { outage: fallback.outage(), at: self.store.clock.now() };
        self.book.lock().let_in(reservation, self.store.id(), stage);
    }

    /// The store may be back sooner than the share has room. What is never in the share may be in the
    /// limit.
    fn until_back(&self, unmet: Unmet, waits: bool) -> Unmet {
        match unmet.wait() {
            Wait::Never => self.away(SOON),
            Wait::At(time) if !waits || time <= self.store.clock.now() + SOON => unmet,
            Wait::Unknown if !waits => unmet,
            _ => self.away(SOON),
        }
    }

    fn away(&self, nanos: u64) -> Unmet {
        Unmet::Away { until: self.store.clock.now().saturating_add(nanos) }
    }

    /// What the store says: `Err` where it has said nothing.
    async fn ask(self: &Arc<Self>, question: &Question) -> Result<Result<(), Unmet>, Failure> {
        let Question { reservation, id, waits, asked_at, .. } = question;
        let ttl = micros(self.store.settings.ttl);
        let verb = Verb::Reserve { ttl, waits: *waits };
        let mut granted = Vec::new();
        for group in self.groups(reservation, &reservation.cost) {
            if !self.book.lock().is_asked(reservation, *id) {
                return Err(Failure::GivenUp);
            }
            let answer = self.store.call(verb, *id, &group.pieces, *asked_at).await?;
            match answer.verdict {
                Verdict::Done => granted.push(group),
                Verdict::Refused { part, rule, wait } => {
                    self.give_back(question, &granted).await;
                    let wait =
                        self.wait((&group.pieces, &answer.views), (part, rule), wait, *waits);
                    let scope = group.scopes.get(part).copied().unwrap_or_default();
                    return Ok(Err(Unmet::Short { scope, shortfall: Shortfall { rule, wait } }));
                }
                // Its end has overtaken it.
                Verdict::Unknown => return Err(Failure::GivenUp),
                _ => return Err(Failure::UNREADABLE),
            }
        }
        Ok(Ok(()))
    }

    /// What was granted of a request that is refused is given back before its owner hears of it: a
    /// late copy of that would take the grant away that comes when it asks again under this name. Where
    /// that isn't known to be done, it asks under another.
    async fn give_back(self: &Arc<Self>, question: &Question, granted: &[Group]) {
        let Question { reservation, id, asked_at, .. } = question;
        let release = Verb::Release { unsure: false };
        for group in granted {
            if let Err(failure) = self.store.call(release, *id, &group.pieces, *asked_at).await {
                self.failed(&failure);
                self.give_up(reservation, *id);
                return;
            }
        }
    }

    /// When there may be room. Who asks again does so when others may have ended at the latest.
    fn wait(
        &self,
        (pieces, views): (&[Piece], &[View]),
        (part, rule): (usize, usize),
        wait: InTime,
        waits: bool,
    ) -> Wait {
        let bucket = views.get(part).and_then(|view| view.buckets.get(rule));
        let is_held = bucket.is_some_and(|&(_, held)| held > 0);
        let rule = pieces.get(part).and_then(|piece| piece.rules.get(rule));
        let in_flight = rule.is_some_and(|rule| *rule.dimension() == Dimension::Concurrency);
        let others = if in_flight { OTHERS_LEAVE } else { OTHERS_SETTLE };
        let nanos = match wait {
            InTime::Never => return Wait::Never,
            InTime::Unknown if !waits => return Wait::Unknown,
            InTime::Unknown => others,
            InTime::In(micros) if waits && is_held => micros.saturating_mul(1_000).min(others),
            InTime::In(micros) => micros.saturating_mul(1_000),
        };
        Wait::At(self.store.clock.now().saturating_add(nanos))
    }

    pub(super) fn groups(&self, reservation: &Reservation, cost: &Cost) -> Vec<Group> {
        Group::all(reservation, cost, self.store.names.are_spread())
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(MOST)
}

/// While the store is away, in nanoseconds: when it is asked again.
const SOON: u64 = 20_000_000;
/// When another process may have ended a request, in nanoseconds; it tells nobody.
const OTHERS_LEAVE: u64 = 20_000_000;
/// When another may have said that a request took less than it had reserved.
const OTHERS_SETTLE: u64 = 250_000_000;
/// The script's numbers are exact up to here.
const MOST: u64 = (1 << 53) - 1;
