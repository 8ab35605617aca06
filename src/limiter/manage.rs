use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "regex")]
use regex::Regex;
use smallvec::SmallVec;

use super::backend::{Reservation, Reserved};
use super::event::Event;
use super::limiter::Limiter;
use super::line::Wakers;
use super::missing_feature::MissingFeature;
use super::named_quota::QuotaOrigin;
use super::pattern::Pattern;
use super::place::Place;
use super::plan::Plan;
use super::quotas::Home;
#[cfg(feature = "regex")]
use super::regex_name::regex_name;
use super::shard::{Core, Shard, hash_of};
use super::slot::Slot;
use super::snapshot::{BucketSnapshot, KeySnapshot};
use super::sync::atomic::Ordering;
use crate::engine::{self, Saved};
use crate::provider::{LimitReading, Profile};
use crate::quota::{Cost, Limit, Quota, UnknownZone, Usage};

/// What is done to a limiter while it runs.
impl Limiter {
    pub(super) fn set_quota(&self, key: &str, quota: &Quota) {
        self.put_quota(key, quota, QuotaOrigin::Set);
    }

    #[cfg(feature = "regex")]
    pub(super) fn set_quota_regex(&self, regex: &Regex, quota: &Quota) {
        self.put_quota(&regex_name(regex), quota, QuotaOrigin::Set);
    }

    pub(super) fn configure_quota(&self, name: &str, quota: &Quota) {
        self.put_quota(name, quota, QuotaOrigin::Configured);
    }

    fn put_quota(&self, name: &str, quota: &Quota, origin: QuotaOrigin) {
        if name.is_empty() {
            tracing::warn!("a quota was set for the empty key; name a key or a glob");
        }
        if let Err(error) = MissingFeature::of_quota(name) {
            tracing::warn!("{error}: it counts for no key");
        }
        self.core.quotas.write().set(name, quota, (origin, self.core.version()));
        self.replan(name, quota);
    }

    pub(super) fn remove_quota(&self, key: &str) -> bool {
        let removed = self.core.quotas.write().remove(key);
        if removed {
            self.replan(key, &self.quota(key));
        }
        removed
    }

    pub(super) fn add_provider(&self, profile: Profile) -> Result<(), UnknownZone> {
        self.core.quotas.write().add_provider(profile, self.core.version())?;
        self.shards.iter().for_each(|shard| shard.replan(None));
        Ok(())
    }

    /// Forgets what a key has used, and that its provider refused it; what is in flight stays held.
    pub fn reset(&self, key: &str) {
        // Others may have used it, who are to hear of it.
        let tracked = || self.name(key.into()).place().ok();
        let place = if self.is_tracked() { tracked() } else { self.find(key) };
        if let Some(place) = place {
            place.shard.reset(Some((place.slot, place.generation)));
        }
        if let Some(backend) = &self.core.backend {
            let home = self.peek(key, |slot, _| slot.key.clone());
            backend.reset(home.as_deref().unwrap_or(key));
        }
    }

    /// The same for all keys; of those that a [`Backend`](super::Backend) keeps, for all that are
    /// kept here too.
    pub fn reset_all(&self) {
        if let Some(backend) = &self.core.backend {
            self.keys().iter().for_each(|key| backend.reset(key));
        }
        self.shards.iter().for_each(|shard| shard.reset(None));
    }

    /// Forgets all keys that are as good as new; says how many. The limiter does the same little by
    /// little as new keys come.
    pub fn prune(&self) -> usize {
        let prune = |shard: &Arc<Shard>| {
            let (mut keys, now) = shard.lock();
            keys.sweep(&self.core, now, usize::MAX)
        };
        self.shards.iter().map(prune).sum()
    }

    /// One request that went past the limiter, and its usage: charged, whether it fits or not.
    pub fn record(&self, key: &str, usage: &Usage) {
        let cost =
            Cost::new().tokens(usage.total()).input_tokens(usage.input).output_tokens(usage.output);
        let Some(backend) = &self.core.backend else {
            self.with(key, |slot, now| {
                engine::charge(&slot.plan.rules, &mut slot.buckets, &cost, now);
                slot.book_charge(&cost, now);
            });
            return;
        };
        let reserved = self.with(key, |slot, _| Reserved::of(slot));
        if let Some(reserved) = reserved {
            backend.charge(&Arc::new(Reservation { scopes: [reserved].into(), cost }));
        }
    }

    pub(super) fn learn(&self, key: &str, readings: &[LimitReading]) {
        let limit = |reading: &LimitReading| {
            Limit::new(reading.dimension.clone(), reading.limit?, reading.window)
        };
        let limits: SmallVec<[Limit; 4]> = readings.iter().filter_map(limit).collect();
        // Keys come out of requests: one that reads as a pattern must not set limits for others.
        if Pattern::is_one(key) || self.core.quotas.read().lesson(key, &limits).is_none() {
            return;
        }
        // Its limits may have come with a request.
        let given = self.peek(key, |slot, _| slot.plan.given.is_some());
        if given == Some(true) || given.is_none() {
            return;
        }
        let version = self.core.version();
        // Of several responses at once only the first is taken.
        let taught = self.core.quotas.write().learn(key, &limits, version);
        let Some((quota, first)) = taught else { return };
        self.replan(key, &quota);
        if quota.is_unlimited() {
            tracing::warn!(key, "responses tell no limits; the key is not limited");
        } else {
            tracing::info!(key, ?quota, "limits learned from response headers");
        }
        if first {
            self.count_used(key, readings);
        }
    }

    fn count_used(&self, key: &str, readings: &[LimitReading]) {
        let now = self.now();
        let used = readings.iter().filter_map(|reading| {
            let used = reading.limit?.saturating_sub(reading.remaining?);
            let saved = Saved { taken: vec![(now, used)], held: 0 };
            Some(BucketSnapshot::new(reading.dimension.clone(), reading.window, saved))
        });
        self.absorb(&[KeySnapshot::new(key, used.collect())]);
    }

    pub(super) fn snapshot(&self) -> Vec<KeySnapshot> {
        let mut all = Vec::new();
        for shard in self.shards.iter() {
            let (keys, now) = shard.lock();
            let of_shard = keys.iter().map(|slot| slot.snapshot(now));
            all.extend(of_shard.filter(|key| !key.is_fresh()));
        }
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    pub(super) fn absorb(&self, snapshot: &[KeySnapshot]) {
        let here = self.core.backend.is_none();
        for key in snapshot {
            self.with(&key.key, |slot, now| {
                if here {
                    slot.absorb(key, now);
                }
                slot.absorb_cool_down(key, now);
            });
        }
    }

    /// Refuses new work and rejects whoever waits, at once; then lets a [`Backend`](super::Backend)
    /// finish, and whoever is attached. What is in flight ends as it would have.
    ///
    /// # Cancel safety
    /// Once polled, the limiter is closed.
    pub async fn close(&self) {
        self.core.closed.store(true, Ordering::Release);
        self.core.closing.notify_waiters();
        for shard in self.shards.iter() {
            let mut keys = shard.lock().0;
            keys.plain = false;
            let mut wakers = Wakers::default();
            keys.numbers().for_each(|number| wakers.wake(keys.slots[number].everyone()));
            drop(keys);
            wakers.ring();
        }
        if let Some(backend) = &self.core.backend {
            backend.close().await;
        }
        for attached in self.shards.attached() {
            attached.close().await;
        }
    }

    pub(super) fn unsaved(&self) -> Option<String> {
        self.shards.attached().iter().find_map(|attached| attached.unsaved())
    }

    /// Whether somebody collects what changes.
    pub(super) fn is_tracked(&self) -> bool {
        self.core.tracked.load(Ordering::Acquire)
    }

    /// Where a key is by its own name, or what it shares.
    pub(super) fn find(&self, key: &str) -> Option<Place> {
        let home = || self.core.quotas.read().home(key).map(|home| home.key);
        self.name(key.into()).find().or_else(|| self.name(home()?).find())
    }

    pub(super) fn replan(&self, key: &str, quota: &Quota) {
        match self.name(key.into()) {
            _ if Pattern::is_one(key) => self.shards.iter().for_each(|shard| shard.replan(None)),
            name => name.shard.replan(Some(key)),
        }
        let event = || Event::QuotaChanged { key: key.into(), quota: quota.clone() };
        self.core.events.announce(event);
    }

    /// Does something to a key, which is made if need be; `None` if it is refused.
    pub(super) fn with<T>(&self, key: &str, mut act: impl FnMut(&mut Slot, u64) -> T) -> Option<T> {
        let name = self.name(key.into());
        loop {
            let place = name.place().ok()?;
            let (mut keys, now) = place.shard.lock();
            let slot = &mut keys.slots[place.slot];
            if slot.generation() == place.generation {
                slot.recover(now, &self.core);
                let done = act(slot, now);
                slot.note(now);
                drop(keys);
                self.core.events.flush();
                return Some(done);
            }
        }
    }
}

impl Shard {
    /// Gives every key, or one of them, the plan that it has by now, and wakes whoever waits: some
    /// may be let in, and some wait in vain.
    pub(super) fn replan(&self, only: Option<&str>) {
        let (mut keys, now) = self.lock();
        let quotas = self.core.quotas.read();
        let mut successors = Successors::new(&self.core);
        let mut wakers = Wakers::default();
        let numbers = match only {
            Some(key) => keys.find(hash_of(&self.core, key), key).into_iter().collect(),
            None => keys.listed(),
        };
        for number in numbers {
            let slot = &mut keys.slots[number];
            // A glob doesn't speak of keys whose limits came with a request; their own name does.
            if slot.plan.given.is_some() && only.is_none() {
                continue;
            }
            // Limits for keys that no quota names stay until one does.
            if slot.plan.is_default() && quotas.name_of(&slot.key).is_none() {
                continue;
            }
            wakers.wake(slot.everyone());
            match quotas.home(&slot.key) {
                // It counts elsewhere from now on; who is here goes on.
                Some(home) if home.key != slot.key => {
                    slot.line().moved = true;
                    keys.unlist(number, &self.core);
                }
                home => slot.move_to(home, &mut successors, now),
            }
        }
        drop(quotas);
        drop(keys);
        wakers.ring();
    }

    fn reset(&self, only: Option<(u32, u32)>) {
        let (mut keys, now) = self.lock();
        let mut successors = Successors::new(&self.core);
        let mut wakers = Wakers::default();
        let numbers = match only {
            Some((slot, generation)) if keys.slots[slot].generation() == generation => vec![slot],
            Some(_) => Vec::new(),
            None => keys.listed(),
        };
        for number in numbers {
            keys.slots[number].reset(now, |plan| successors.renewed(plan));
            wakers.wake(keys.slots[number].changed());
        }
        drop(keys);
        wakers.ring();
    }
}

impl Slot {
    /// Follows the plan of its key from now on; there is none for a key that is refused.
    fn move_to(&mut self, home: Option<Home>, successors: &mut Successors<'_>, now: u64) {
        let barred = home.is_none();
        let plan =
            home.map_or_else(|| Arc::new(Plan::unknown(&Quota::new(), (0, 0))), |home| home.plan);
        let removed = self.plan.known && !plan.known;
        if barred || self.there().is_some() {
            let line = self.line();
            line.barred = barred;
            if removed {
                line.ousted = successors.core.arrival();
            }
        }
        self.tidy(now);
        if plan.row != self.plan.row || self.plan.given.is_some() {
            self.change_plan(successors.of(&self.plan, &plan), now);
        }
    }
}

/// One successor for all keys that go from the same plan to the same plan.
struct Successors<'a> {
    core: &'a Core,
    version: u32,
    made: HashMap<(*const Plan, u32), Succession>,
}

/// The old plan is kept: its address must not be given to another.
struct Succession {
    _old: Arc<Plan>,
    new: Arc<Plan>,
}

impl<'a> Successors<'a> {
    fn new(core: &'a Core) -> Self {
        Self { core, version: core.version(), made: HashMap::new() }
    }

    fn of(&mut self, old: &Arc<Plan>, new: &Plan) -> Arc<Plan> {
        let made = self.made.entry((Arc::as_ptr(old), new.row));
        let succession = made.or_insert_with(|| Succession {
            _old: Arc::clone(old),
            new: Arc::new(new.succeed(old, self.version)),
        });
        Arc::clone(&succession.new)
    }

    /// The successor of a plan whose key was reset.
    fn renewed(&mut self, old: &Arc<Plan>) -> Arc<Plan> {
        let made = self.made.entry((Arc::as_ptr(old), old.row));
        let succession = made.or_insert_with(|| Succession {
            _old: Arc::clone(old),
            new: Arc::new(old.renewed(self.version)),
        });
        Arc::clone(&succession.new)
    }
}
