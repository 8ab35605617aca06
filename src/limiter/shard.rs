use std::sync::{Arc, OnceLock, Weak};

use compact_str::CompactString;
use hashbrown::HashTable;
use tokio::sync::Notify;

use super::arena::Arena;
use super::attached::All;
use super::backend::{Backend, Reservation, Unmet};
use super::builder::Settings;
use super::clock::{Boot, Clock, Sleep, SystemClock};
use super::event::Events;
use super::ledger::Docket;
use super::outputs::Outputs;
use super::place::Name;
use super::plan::Plan;
use super::quotas::Quotas;
use super::reduction::Pace;
use super::room::KeyRoom;
use super::slot::Slot;
use super::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use super::sync::{Mutex, MutexGuard, RandomState, RwLock};
use super::totals::{Sample, Totals};
use crate::engine::Timeline;

/// What all keys share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) clock: Time,
    pub(super) quotas: RwLock<Quotas>,
    pub(super) hasher: RandomState,
    pub(super) events: Events,
    pub(super) max_waiting: AtomicUsize,
    pub(super) max_keys: usize,
    pub(super) outputs: Outputs,
    /// `None` where a refusal reduces nothing.
    pub(super) reduction: RwLock<Option<Pace>>,
    pub(super) closed: AtomicBool,
    /// Wakes who sleeps until it is closed.
    pub(super) closing: Notify,
    /// Whether somebody collects what changes.
    pub(super) tracked: AtomicBool,
    pub(super) backend: Option<Arc<dyn Backend>>,
    /// All parts of all keys, for a key that is looked up from one of them.
    pub(super) shards: OnceLock<Weak<All>>,
    pub(super) keys: AtomicUsize,
    /// One of those who were refused.
    pub(super) denied: Sample,
    /// Numbers drawn by those who wait: one order of arrival for all keys.
    arrivals: AtomicU64,
    /// Versions of plans: a permit of an older one never held anything of what came later.
    versions: AtomicU32,
}

/// The clock, with the one that nearly everybody uses at hand.
#[derive(Debug, Clone)]
pub(super) enum Time {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

impl Time {
    #[inline]
    pub(super) fn now(&self) -> u64 {
        match self {
            Self::System(clock) => clock.now(),
            Self::Other(clock) => clock.now(),
        }
    }

    pub(super) fn boot(&self) -> Option<Boot> {
        match self {
            Self::System(clock) => clock.boot(),
            Self::Other(clock) => clock.boot(),
        }
    }

    pub(super) fn sleep_until(&self, time: u64) -> Sleep {
        match self {
            Self::System(clock) => clock.sleep_until(time),
            Self::Other(clock) => clock.sleep_until(time),
        }
    }
}

impl Core {
    pub(super) fn new(
        clock: Time,
        quotas: Quotas,
        settings: Settings,
        backend: Option<Arc<dyn Backend>>,
    ) -> Self {
        Self {
            clock,
            quotas: RwLock::new(quotas),
            hasher: RandomState::default(),
            events: Events::default(),
            max_waiting: AtomicUsize::new(settings.max_waiting),
            max_keys: settings.max_keys,
            outputs: Outputs::new(settings.quantile),
            reduction: RwLock::new(settings.reduction),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            tracked: AtomicBool::new(false),
            backend,
            shards: OnceLock::new(),
            keys: AtomicUsize::new(0),
            denied: Sample::default(),
            arrivals: AtomicU64::new(0),
            versions: AtomicU32::new(0),
        }
    }

    /// What the backend answers without asking elsewhere, if it can.
    pub(super) fn ask_here(&self, asked: &Arc<Reservation>) -> Option<Result<(), Unmet>> {
        self.backend.as_ref()?.reserve_here(asked)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// A number above all that were drawn before.
    pub(super) fn arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A version above all before.
    pub(super) fn version(&self) -> u32 {
        self.versions.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A part of all keys, behind a lock of its own.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) core: Arc<Core>,
    keys: Apart<Mutex<Keys>>,
}

/// On cache lines of its own: permits count their references beside it all the time.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

#[derive(Debug)]
pub(super) struct Keys {
    /// Numbers of slots by the hash of their key.
    index: HashTable<u32>,
    pub(super) slots: Arena<Slot>,
    /// Numbers of slots whose keys were forgotten.
    vacant: Vec<u32>,
    /// Where the sweep goes on.
    pub(super) cursor: u32,
    time: Timeline,
    /// What was answered to those whose first key is here.
    pub(super) totals: Totals,
    /// Whether the buckets are here and the limiter is open.
    pub(super) plain: bool,
    /// What is to be collected, since somebody collects.
    pub(super) docket: Option<Arc<Docket>>,
}

/// What became of a new key.
pub(super) enum Making {
    Made {
        slot: u32,
        generation: u32,
    },
    /// By now its buckets are elsewhere, or it is refused.
    Moved,
    /// There are as many keys as there may be.
    Full,
}

impl Shard {
    pub(super) fn new(core: Arc<Core>) -> Self {
        let keys = Keys {
            index: HashTable::new(),
            slots: Arena::new(),
            vacant: Vec::new(),
            cursor: 0,
            time: Timeline::default(),
            totals: Totals::default(),
            plain: core.backend.is_none(),
            docket: None,
        };
        Self { core, keys: Apart(Mutex::new(keys)) }
    }

    /// The keys, and the time to use while the lock is held.
    #[inline(always)]
    pub(super) fn lock(&self) -> (MutexGuard<'_, Keys>, u64) {
        let clock = &self.core.clock;
        let now = clock.now();
        let mut keys = self.keys.0.lock();
        let now = keys.advance(now, clock);
        (keys, now)
    }

    /// The keys, for a caller that needs no time.
    #[inline]
    pub(super) fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.0.lock()
    }

    /// A slot for a key.
    #[cold]
    pub(super) fn make(&self, Name { hash, key, default, budget, .. }: &Name) -> Making {
        let (slot, generation, known) = {
            let (mut keys, now) = self.lock();
            // Somebody else may have made it, and the plan must be read under the lock: see `replan`.
            if let Some(slot) = keys.find(*hash, key) {
                return Making::Made { slot, generation: keys.slots[slot].generation() };
            }
            let home = self.core.quotas.read().home_or(key, default.as_ref());
            let Some(home) = home.filter(|home| home.key == *key) else { return Making::Moved };
            keys.sweep(&self.core, now, SWEPT_PER_NEW_KEY);
            let Some(room) = self.core.take_room(&home.plan, budget.as_ref()) else {
                return Making::Full;
            };
            let known = home.plan.known;
            let slot = keys.occupy((*hash, key.clone()), home.plan, room, &self.core);
            (slot, keys.slots[slot].generation(), known)
        };
        // Not under the lock: a subscriber may use the limiter.
        if !known {
            tracing::warn!(key = key.as_str(), "no quota is known for this key");
        }
        Making::Made { slot, generation }
    }
}

impl Keys {
    /// The time to use for a reading of the clock: it doesn't run back.
    #[inline]
    pub(super) fn advance(&mut self, now: u64, clock: &Time) -> u64 {
        // Either the thread was held up for long before it got the lock, or the clock was set back: a
        // reading under the lock tells.
        let now = if self.time.is_far_ahead(now) { clock.now() } else { now };
        let (now, back) = self.time.advance(now);
        if back > 0 {
            self.rebase(back);
        }
        now
    }

    #[cold]
    fn rebase(&mut self, back: u64) {
        for number in self.numbers() {
            self.slots[number].rebase(back);
        }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: &str) -> Option<u32> {
        self.index.find(hash, |&slot| self.slots[slot].key == *key).copied()
    }

    /// The slots of all keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.index.iter().map(|&slot| &self.slots[slot])
    }

    /// The numbers of the slots of all keys.
    pub(super) fn listed(&self) -> Vec<u32> {
        self.index.iter().copied().collect()
    }

    /// A slot for a key that has none.
    fn occupy(
        &mut self,
        (hash, key): (u64, CompactString),
        plan: Arc<Plan>,
        room: KeyRoom,
        core: &Core,
    ) -> u32 {
        let slot = match self.vacant.pop() {
            Some(number) => {
                self.slots[number].occupy(key, plan, room);
                number
            }
            None => self.slots.push(Slot::new(key, plan).in_room(room)),
        };
        if let Some(docket) = &self.docket {
            self.slots[slot].track(docket, slot, 0);
        }
        let slots = &self.slots;
        self.index.insert_unique(hash, slot, |&slot| hash_of(core, &slots[slot].key));
        slot
    }

    /// Takes a key out of the index: its slot goes on for those who have it.
    pub(super) fn unlist(&mut self, slot: u32, core: &Core) {
        let hash = hash_of(core, &self.slots[slot].key);
        if let Ok(entry) = self.index.find_entry(hash, |&number| number == slot) {
            entry.remove();
        }
    }

    /// Forgets up to so many keys that are as good as new, among as many slots from the cursor on.
    pub(super) fn sweep(&mut self, core: &Core, now: u64, slots: usize) -> usize {
        let all = self.slots.len();
        let mut forgotten = 0;
        for _ in 0..slots.min(all) {
            let number = self.cursor;
            self.cursor = if (number as usize + 1) < all { number + 1 } else { 0 };
            if self.slots[number].is_idle(now) {
                self.unlist(number, core);
                self.slots[number].vacate();
                self.vacant.push(number);
                forgotten += 1;
            }
        }
        core.keys.fetch_sub(forgotten, Ordering::Relaxed);
        forgotten
    }

    /// From now on, keeps what changes.
    pub(super) fn track(&mut self, now: u64) {
        if self.docket.is_some() {
            return;
        }
        let docket = Arc::<Docket>::default();
        for number in self.numbers() {
            if self.slots[number].is_taken() {
                self.slots[number].track(&docket, number, now);
            }
        }
        self.docket = Some(docket);
    }

    /// The numbers of all slots, vacant ones too.
    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.slots.len()).expect("fewer than 2^32 keys in a shard")
    }
}

/// The hash by which a key is found.
#[inline]
pub(super) fn hash_of(core: &Core, key: &str) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = core.hasher.build_hasher();
    hasher.write(key.as_bytes());
    hasher.finish()
}

/// Slots that are looked at whenever a key is new: so many keys that are idle never pile up.
const SWEPT_PER_NEW_KEY: usize = 4;
