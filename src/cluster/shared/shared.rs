use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;

use super::book::Stage;
use super::builder::{Settings, SharedBuilder};
use super::core::Core;
use super::error::SharedError;
use super::keeper::Keeper;
use super::mode::Mode;
use super::names::Names;
use super::piece::Group;
use super::script::{Id, Verb};
use super::status::SharedStatus;
use super::store::Store;
use super::url::Server;
use crate::cluster::worker::Worker;
use crate::engine::{Level, Rule};
use crate::limiter::{
    Backend, BackendStatus, Clock, Closing, Ending, Reservation, Reserving, Unmet,
};

/// Limits that many machines share, kept in Redis or Valkey: the [`Backend`] of a limiter.
///
/// All limiters whose `Shared` names the same store and account take one limit for each key. One
/// decision is one call of a script, over all buckets of all keys of a request; when a request has
/// ended is told in the background. A thread of its own keeps the connection, and nothing depends on
/// the program's runtime.
///
/// It doesn't queue: that is the limiter's, and who waits in several processes is let in in the order
/// in which they were refused. It doesn't hear of other processes' endings: who waits for them asks
/// again, every 20 ms for a place among requests in flight, and every 250 ms else.
///
/// # What is promised
/// - A decision never takes longer than the [timeout](SharedBuilder::timeout) and 10 ms, whatever
///   the store does. One that came too late is undone.
/// - While the store answers, no more is let in than the limit, over all processes; and what it knew
///   is told to it by who saw it, if it comes back empty. One that comes back with an older state (a
///   replica that lacks the last writes, a file that was written before them) is believed: what it
///   lacks is let in once more. Of requests in flight it knows none at first, if it comes back empty:
///   they are told it within a third of a reservation's [time](SharedBuilder::reservation_ttl).
/// - While it doesn't, [`OnFailure`](crate::cluster::OnFailure) decides, and
///   [`status`](Self::status) counts it. What was let in meanwhile is charged before the store
///   decides again, which it does within 100 ms of its return. With keys that are
///   [spread](SharedBuilder::spread), one whose server is still away is charged when that is back; and
///   so is a key that the store can't decide about (it holds something else there).
/// - A reservation that was sent twice is made once, and ends once. What is charged without one is
///   charged once if it is sent again within a minute, and else, rather than not at all, perhaps twice.
/// - What a process held that is gone counts as used once its
///   [time](SharedBuilder::reservation_ttl) has passed, and its place among requests in flight is
///   free again.
///
/// # Cancel safety
/// A decision that nobody waits for any more is undone, in the store too.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::cluster::{OnFailure, Shared};
/// use tollgate::limiter::Limiter;
/// use tollgate::quota::{Cost, Quota};
///
/// // Nobody listens there; so each process goes on with its share of the limit.
/// let shared = Shared::builder("redis://127.0.0.1:1", "team-a")
///     .on_failure(OnFailure::LocalShare)
///     .connect()?;
/// let limiter = Limiter::builder()
///     .quota("gpt-4o", Quota::new().rpm(500))
///     .backend(Arc::clone(&shared) as _)
///     .build()?;
///
/// limiter.try_acquire("gpt-4o", &Cost::new())?.settle(&Cost::new());
/// assert_eq!(shared.status().degraded_local, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Shared {
    account: String,
    core: Arc<Core>,
    worker: Worker,
}

impl Shared {
    /// For the limits of an account, in the store at this URL.
    pub fn builder(url: impl AsRef<str>, account: impl AsRef<str>) -> SharedBuilder {
        SharedBuilder::new(url.as_ref(), account.as_ref())
    }

    /// How it fares.
    pub fn status(&self) -> SharedStatus {
        let (way, counters) = (&self.core.store.way, &self.core.store.counters);
        SharedStatus {
            connected: way.is_there(),
            away_since: way.away().map(|away| away.since),
            outages: counters.outages.now(),
            decided: counters.decided.now(),
            degraded_closed: counters.closed.now(),
            degraded_open: counters.open.now(),
            degraded_local: counters.local.now(),
            retries: counters.retries.now(),
            timeouts: counters.timeouts.now(),
            unacknowledged: counters.unacknowledged.now(),
            members: counters.members.now(),
            opened: u64::try_from(self.core.book.lock().opened()).unwrap_or(u64::MAX),
        }
    }

    pub(super) fn start(
        server: Server,
        account: &str,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SharedError> {
        let names = Names::new(account, settings.spread);
        let core = Arc::new(Core::new(Store::new(names, settings, clock)));
        let keeper = Keeper::new(Arc::clone(&core), server);
        let (upkeep, leases) = (Arc::clone(&core).upkeep(), Arc::clone(&core).keep_leases());
        let task = async {
            tokio::join!(keeper.keep(), upkeep, leases);
        };
        let worker = Worker::start("tollgate-shared", task).map_err(SharedError::Thread)?;
        Ok(Self { account: account.to_owned(), core, worker })
    }

    fn tell(&self, verb: Verb, id: Id, groups: Vec<Group>) {
        self.worker.handle().spawn(self.core.told(verb, id, groups));
    }

    /// The store is to forget what it was asked for, whatever it did: nobody needs it.
    fn undo(&self, id: Id, reservation: &Reservation) {
        let groups = self.core.groups(reservation, &reservation.cost);
        self.tell(Verb::Release { unsure: true }, id, groups);
    }

    /// A request that was let in without the store. It was charged what it had reserved, if the store
    /// is back, and then only what it took beyond that is told.
    fn end_let_in(&self, reservation: &Reservation, ending: &Ending, (outage, sent): (u64, u64)) {
        let store = &self.core.store;
        let actual = match ending {
            Ending::Settled(cost) => Some(cost),
            Ending::Released => None,
        };
        let mut fallback = self.core.fallback.lock();
        if fallback.outage() == outage {
            let members = store.counters.members.now().max(1);
            return fallback.end(reservation, actual, (members, sent, store.clock.now()));
        }
        drop(fallback);
        let Some(actual) = actual else { return };
        let mut groups = self.core.groups(reservation, actual);
        let pieces = groups.iter_mut().flat_map(|group| &mut group.pieces);
        let beyond: Vec<_> = pieces.map(|piece| piece.less(&reservation.cost)).collect();
        if beyond.contains(&true) {
            self.tell(Verb::Charge, store.id(), groups);
        }
    }
}

impl Backend for Shared {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        let core = Arc::clone(&self.core);
        if core.store.way.is_away() {
            return Box::pin(std::future::ready(core.without(reservation, true)));
        }
        let question = core.question(reservation, true);
        let (answer, answered) = oneshot::channel();
        self.worker.handle().spawn(async move {
            // Whoever has dropped the other end says how it ended.
            let _ = answer.send(Arc::clone(&core).reserve(question).await);
        });
        let (core, reservation) = (Arc::clone(&self.core), Arc::clone(reservation));
        Box::pin(async move {
            let without = |_| core.without(&reservation, true);
            answered.await.unwrap_or_else(without)
        })
    }

    fn reserve_here(&self, reservation: &Arc<Reservation>) -> Option<Result<(), Unmet>> {
        let core = &self.core;
        let leases = core.store.settings.mode == Mode::Lease;
        if !leases || !core.leases.try_take(reservation, core.store.ticks.now()) {
            return None;
        }
        // The store keeps no place for it any more.
        let refused = core.book.lock().remove(reservation);
        if let Some((id, _)) = refused {
            self.undo(id, reservation);
        }
        Some(Ok(()))
    }

    fn try_reserve(&self, reservation: &Arc<Reservation>) -> Result<(), Unmet> {
        let core = Arc::clone(&self.core);
        if core.store.way.is_away() {
            return core.without(reservation, false);
        }
        let question = core.question(reservation, false);
        let id = question.id;
        let (answer, answered) = mpsc::sync_channel(1);
        self.worker.handle().spawn(async move {
            let _ = answer.send(core.reserve(question).await);
        });
        let (core, in_time) = (&self.core, self.patience() + GRACE);
        let waited = answered.recv_timeout(in_time);
        waited
            .or_else(|_| {
                let _on_worker = self.worker.handle().enter();
                match core.give_up(reservation, id) {
                    true => Ok(core.without(reservation, false)),
                    // It was decided just now.
                    false => answered.recv(),
                }
            })
            .unwrap_or_else(|_| core.without(reservation, false))
    }

    fn patience(&self) -> Duration {
        self.core.store.settings.timeout
    }

    fn end(&self, reservation: &Arc<Reservation>, ending: Ending) {
        // Whoever is being asked for must find it gone, before what it has taken is given back.
        let booked = self.core.book.lock().remove(reservation);
        if let Some(beyond) = self.core.leases.end(reservation, &ending) {
            if let Some((id, _)) = booked {
                self.undo(id, reservation);
            }
            for piece in beyond {
                self.tell(Verb::Charge, self.core.store.id(), vec![Group::of(piece)]);
            }
            return;
        }
        let Some((id, stage)) = booked else { return };
        let unsure = stage == Stage::Asked;
        match stage {
            Stage::LetIn { outage, at } => self.end_let_in(reservation, &ending, (outage, at)),
            Stage::Asked | Stage::Refused | Stage::Held { .. } => {
                let (verb, cost) = match &ending {
                    Ending::Settled(cost) => (Verb::Settle { unsure }, cost),
                    Ending::Released => (Verb::Release { unsure }, &reservation.cost),
                };
                if self.core.store.way.is_away() {
                    self.core.fallback.lock().left(reservation);
                }
                self.tell(verb, id, self.core.groups(reservation, cost));
            }
        }
    }

    fn charge(&self, reservation: &Arc<Reservation>) {
        if self.core.store.way.is_away() {
            return self.core.fallback.lock().owe(reservation);
        }
        let groups = self.core.groups(reservation, &reservation.cost);
        self.tell(Verb::Charge, self.core.store.id(), groups);
    }

    fn reset(&self, key: &str) {
        self.core.fallback.lock().reset(key);
        self.core.leases.reset(key);
        let rules = self.core.store.views.lock().rules(key);
        let group = Group::bare(key, rules);
        self.tell(Verb::Reset, self.core.store.id(), vec![group]);
    }

    fn levels(&self, key: &str, rules: &[Rule]) -> Option<Vec<Level>> {
        let (store, now) = (&self.core.store, self.core.store.clock.now());
        let times = (store.ticks.now(), now);
        let slot = store.slot(key);
        let mut buckets = store.views.lock().buckets((key, slot), &rules.into(), times)?;
        let leased = self.core.leases.figures(key, rules, times.0).unwrap_or_default();
        for ((rule, bucket), (used, free)) in rules.iter().zip(&mut buckets).zip(leased) {
            bucket.drop_hold(used.saturating_add(free));
            bucket.charge(rule, used, now);
        }
        Some(rules.iter().zip(buckets).map(|(rule, bucket)| bucket.level(rule, now)).collect())
    }

    fn status(&self) -> Option<BackendStatus> {
        let SharedStatus { connected, members, .. } = self.status();
        let counters = &self.core.store.counters;
        let degraded = [&counters.closed, &counters.open, &counters.local];
        let degraded = degraded.into_iter().map(|counter| counter.now()).sum();
        Some(BackendStatus { connected, members, degraded })
    }

    fn close(&self) -> Closing {
        let (done, is_done) = oneshot::channel();
        let core = Arc::clone(&self.core);
        self.worker.handle().spawn(async move {
            core.return_leases();
            core.close().await;
            let _ = done.send(());
        });
        Box::pin(async move {
            let _ = is_done.await;
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("account", &self.account)
            .field("settings", &self.core.store.settings)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// A thread that waits gives its own worker so much more time than that gives the store.
const GRACE: Duration = Duration::from_millis(5);
