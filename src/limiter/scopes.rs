use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::backend::Unmet;
use super::error::Refused;
use super::permit::{Part, Parts, Taken};
use super::place::Place;
use super::plan::Plan;
use super::shard::{Core, Keys};
use super::slot::{Denial, Slot};
use super::sync::MutexGuard;
use crate::engine::Wait;
use crate::quota::{Cost, Quota};

/// All keys of one request under their locks: what is done to them is done at one moment.
#[derive(Debug)]
pub(super) struct Scopes<'a> {
    /// One for each shard, in the order of their addresses: nobody locks them the other way round.
    guards: SmallVec<[MutexGuard<'a, Keys>; 2]>,
    /// Guard and slot of each key, in the order of the request.
    seats: SmallVec<[(usize, u32); 2]>,
    pub(super) now: u64,
}

/// What holds a request up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocked {
    /// The key that does for longest, and why.
    pub(super) scope: usize,
    pub(super) denial: Denial,
    /// The key whose queue it belongs into: of those that are short the one named first.
    pub(super) queue: usize,
}

impl Blocked {
    pub(super) fn at(scope: usize, denial: Denial) -> Self {
        Self { scope, denial, queue: scope }
    }

    /// A backend said so of a request in this queue.
    pub(super) fn elsewhere(queue: usize, unmet: Unmet) -> Self {
        let (scope, denial) = match unmet {
            Unmet::Short { scope, shortfall } => (scope, Denial::Short(shortfall)),
            Unmet::Full(wait) => (queue, Denial::Elsewhere(wait)),
            Unmet::Away { until } => (queue, Denial::Away(until)),
        };
        Self { scope, denial, queue }
    }
}

/// The places of a request's keys.
pub(super) type Places = SmallVec<[Place; 1]>;

impl<'a> Scopes<'a> {
    /// `None` if a key was forgotten since it was looked up.
    pub(super) fn lock(places: &'a [Place]) -> Option<Self> {
        let mut order: SmallVec<[_; 2]> = places.iter().map(|place| &place.shard).collect();
        order.sort_unstable_by_key(|shard| Arc::as_ptr(shard));
        order.dedup_by_key(|shard| Arc::as_ptr(shard));
        let mut now = 0;
        let mut guards: SmallVec<[MutexGuard<'a, Keys>; 2]> = SmallVec::new();
        for shard in &order {
            let (keys, of_shard) = shard.lock();
            guards.push(keys);
            now = now.max(of_shard);
        }
        // A shard that was used a moment ago by another thread may be a little ahead.
        for (keys, shard) in guards.iter_mut().zip(&order) {
            now = keys.advance(now, &shard.core.clock);
        }
        let guard = |place: &Place| order.iter().position(|shard| Arc::ptr_eq(shard, &place.shard));
        let seat = |place: &Place| {
            let guard = guard(place)?;
            let slot = &guards[guard].slots[place.slot];
            (slot.generation() == place.generation).then_some((guard, place.slot))
        };
        let seats = places.iter().map(seat).collect::<Option<_>>()?;
        let mut scopes = Self { guards, seats, now };
        scopes.for_each(|slot, now| slot.recover(now, &places[0].shard.core));
        Some(scopes)
    }

    pub(super) fn slot(&self, scope: usize) -> &Slot {
        let (guard, slot) = self.seats[scope];
        &self.guards[guard].slots[slot]
    }

    pub(super) fn slot_mut(&mut self, scope: usize) -> &mut Slot {
        let (guard, slot) = self.seats[scope];
        &mut self.guards[guard].slots[slot]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Slot> {
        (0..self.seats.len()).map(|scope| self.slot(scope))
    }

    /// How often something has changed at any of them.
    pub(super) fn changes(&self) -> u64 {
        self.all().map(Slot::changes).sum()
    }

    pub(super) fn for_each(&mut self, mut act: impl FnMut(&mut Slot, u64)) {
        let now = self.now;
        (0..self.seats.len()).for_each(|scope| act(self.slot_mut(scope), now));
    }

    /// Puts limits that came with the request in the place of those that the keys have.
    pub(super) fn give(&mut self, quota: Option<&Quota>, core: &Core) {
        let Some(quota) = quota else { return };
        self.for_each(|slot, now| {
            if slot.plan.given.as_ref() != Some(quota) {
                let version = core.version();
                let plan = core.quotas.read().given(&slot.key, quota, version);
                let plan = plan.succeed(&slot.plan, version);
                slot.change_plan(Arc::new(plan), now);
            }
        });
    }

    /// Puts limits that came with the request for keys that no quota names in the place of those that
    /// such keys have.
    pub(super) fn give_default(&mut self, default: Option<&Arc<Plan>>, core: &Core) {
        let Some(plan) = default else { return };
        self.for_each(|slot, now| {
            if slot.plan.named || slot.plan.has_rules_of(plan) {
                return;
            }
            if let Some(line) = slot.there() {
                line.barred = false;
            }
            // Of a key that is as good as new nobody holds anything: many have one plan together.
            let plan = match slot.is_idle(now) && slot.plan.version < plan.version {
                true => Arc::clone(plan),
                false => Arc::new(plan.succeed(&slot.plan, core.version())),
            };
            slot.change_plan(plan, now);
        });
    }

    /// What holds up a request that drew this number: of the keys that are short the one that is for
    /// longest, else one for which others wait who came before. `here` says whether the buckets are
    /// here.
    pub(super) fn blocked(&self, cost: &Cost, number: u64, here: bool) -> Option<Blocked> {
        let Some(mut blocked) = self.short(cost, self.now, here) else {
            let behind = |scope: &usize| self.slot(*scope).is_behind(number);
            let others = (0..self.seats.len()).find(behind);
            return others.map(|scope| Blocked::at(scope, Denial::OthersWaiting));
        };
        // A key that has room now may not any more when the others do.
        while let Wait::At(then) = blocked.denial.wait()
            && let Some(next) = self.short(cost, then, here)
            && next.denial.wait() > blocked.denial.wait()
        {
            blocked = Blocked { queue: blocked.queue, ..next };
        }
        Some(blocked)
    }

    /// Why the cost can't be reserved whatever is free: a key limits tokens, but none of the kinds of
    /// tokens that it names, or none of the keys limits a custom dimension that it names.
    pub(super) fn uncounted(&self, cost: &Cost) -> Option<Refused> {
        if self.all().all(|slot| slot.plan.counts(cost)) {
            return None;
        }
        let elsewhere = |custom: &str| self.all().any(|slot| slot.plan.counts_custom(custom));
        self.all().find_map(|slot| {
            let dimension = slot.plan.refuses(cost, elsewhere)?;
            Some(slot.uncounted(dimension, self.now))
        })
    }

    /// Why one of the keys has no room, whatever the others have.
    pub(super) fn denial(&self, scope: usize, cost: &Cost, at: u64, here: bool) -> Option<Denial> {
        let slot = self.slot(scope);
        if here { slot.fits(cost, at).err() } else { slot.passable(at).err() }
    }

    fn short(&self, cost: &Cost, at: u64, here: bool) -> Option<Blocked> {
        let denied = |scope| Some((scope, self.denial(scope, cost, at, here)?));
        let mut denied = (0..self.seats.len()).filter_map(denied);
        let (first, denial) = denied.next()?;
        let longest = denied.fold((first, denial), |longest, next| {
            if next.1.wait() > longest.1.wait() { next } else { longest }
        });
        Some(Blocked { scope: longest.0, denial: longest.1, queue: first })
    }

    pub(super) fn refused(&self, blocked: Blocked, cost: &Cost) -> Refused {
        self.slot(blocked.scope).refused(blocked.denial, cost, self.now)
    }

    /// Takes the cost of every key; the parts of the permit, and whether it keeps something until it
    /// ends.
    pub(super) fn commit(&mut self, places: &[Place], cost: &Cost) -> (Parts, bool) {
        let mut parts = self.parts(places);
        let mut reserved = parts.iter_mut().map(|taken| &mut taken.reserved);
        self.for_each(|slot, now| {
            let clipped = slot.plan.clip_guesses(cost);
            slot.commit(&clipped, now);
            if let (Cow::Owned(clipped), Some(reserved)) = (clipped, reserved.next()) {
                *reserved = Some(Box::new(clipped));
            }
        });
        let open = self.all().any(|slot| slot.plan.holds);
        if open {
            self.pin();
        }
        (parts, open)
    }

    /// The cost, but of its guesses at most what all keys can hold.
    pub(super) fn clip_guesses(&self, cost: &Cost) -> Cost {
        self.all().fold(cost.clone(), |cost, slot| slot.plan.clip_guesses(&cost).into_owned())
    }

    /// Keeps the keys from being forgotten, as long as a permit is open or somebody waits.
    pub(super) fn pin(&mut self) {
        self.for_each(|slot, _| slot.pin());
    }

    /// What a permit for all keys has of each.
    pub(super) fn parts(&self, places: &[Place]) -> Parts {
        let part = |(place, slot): (&Place, &Slot)| Part::new(place.clone(), slot.plan.version);
        places.iter().zip(self.all()).map(part).map(Taken::new).collect()
    }
}
