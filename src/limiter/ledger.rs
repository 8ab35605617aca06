use std::sync::Arc;

use smallvec::SmallVec;

use super::changes::{BucketChanges, KeyChanges};
use super::plan::{Buckets, Plan};
use super::sheet::{Sheet, named, signed};
use super::slot::Slot;
use super::sync::Mutex;
use super::sync::atomic::{AtomicU64, Ordering};
use crate::quota::{Cost, Dimension, Window};

/// What has changed of a key, until it is collected.
///
/// It says what the engine does, rule by rule: what is taken as it is taken, what is held only in
/// total. What others did, or are taken to have done, isn't in it.
#[derive(Debug)]
pub(super) struct Ledger {
    docket: Arc<Docket>,
    number: u32,
    /// Whether it is on the docket.
    listed: bool,
    /// What was taken before isn't told, and so isn't what is given back of it.
    since: u64,
    /// In the order of the plan's rules.
    pub(super) sheets: SmallVec<[Sheet; 3]>,
    /// Of limits that the key doesn't have, or no longer.
    loose: Vec<(Dimension, Window, Sheet)>,
    pub(super) guesses: Vec<Guess>,
    /// Until when it cools down, if that is new.
    pub(super) cooling: Option<u64>,
    pub(super) reset_at: Option<u64>,
}

/// The keys of a shard that have something to collect.
#[derive(Debug, Default)]
pub(super) struct Docket {
    /// The numbers of their slots.
    listed: Mutex<Vec<u32>>,
    /// How often they were collected.
    rounds: AtomicU64,
}

/// What the headers of a response made us take for what others took.
#[derive(Debug)]
pub(super) struct Guess {
    rule: usize,
    round: u64,
    amount: u64,
}

impl Docket {
    /// Those that are listed, for one more round; each stays as it is until it is collected.
    pub(super) fn take(&self) -> Vec<u32> {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        std::mem::take(&mut self.listed.lock())
    }
}

impl Ledger {
    fn new((docket, number): (&Arc<Docket>, u32), rules: usize, since: u64) -> Self {
        Self {
            docket: Arc::clone(docket),
            number,
            listed: false,
            since,
            sheets: std::iter::repeat_with(Sheet::default).take(rules).collect(),
            loose: Vec::new(),
            guesses: Vec::new(),
            cooling: None,
            reset_at: None,
        }
    }

    /// Whether there is something to collect, or to remember for when others say what they hold.
    pub(super) fn is_open(&self) -> bool {
        self.listed
    }

    #[inline]
    pub(super) fn list(&mut self) {
        if !self.listed {
            self.listed = true;
            self.docket.listed.lock().push(self.number);
        }
    }

    #[inline]
    fn reserved(&mut self, (plan, buckets): (&Plan, &Buckets), cost: &Cost, now: u64) {
        for ((rule, bucket), sheet) in plan.rules.iter().zip(buckets).zip(&mut self.sheets) {
            if !rule.holds() {
                sheet.enter((rule, bucket), now, signed(rule.amount(cost)));
            }
        }
        self.list();
    }

    fn ended(
        &mut self,
        (plan, buckets): (&Plan, &Buckets),
        (version, sent, reserved): (u32, u64, &Cost),
        charged: Option<&Cost>,
        now: u64,
    ) {
        let rules = plan.rules.iter().zip(buckets).zip(&mut self.sheets);
        for (at, ((rule, bucket), sheet)) in rules.enumerate() {
            let of = (rule, bucket);
            let (reserved, charged) =
                (rule.amount(reserved), charged.map_or(0, |cost| rule.amount(cost)));
            match rule.holds() {
                _ if *rule.dimension() == Dimension::Concurrency || !plan.stood(at, version) => {}
                false if sent < self.since => {}
                true => sheet.enter(of, now, signed(charged)),
                false => {
                    let more = signed(charged).saturating_sub(signed(reserved));
                    // As the engine does it.
                    sheet.enter(of, if more > 0 && rule.refills() { now } else { sent }, more);
                }
            }
        }
        self.list();
    }

    /// The sheet of a limit that the key doesn't have.
    pub(super) fn loose(&mut self, dimension: &Dimension, window: Window) -> &mut Sheet {
        let window = named(dimension, window);
        let same = |sheet: &(Dimension, Window, Sheet)| sheet.0 == *dimension && sheet.1 == window;
        let at = self.loose.iter().position(same).unwrap_or_else(|| {
            self.loose.push((dimension.clone(), window, Sheet::default()));
            self.loose.len() - 1
        });
        &mut self.loose[at].2
    }

    pub(super) fn tidy(&mut self) {
        self.loose.retain(|(.., sheet)| !sheet.is_blank());
    }

    /// Follows another plan: sheets go to the rules that stand for the same limit. What was held of a
    /// rule that holds no longer, or is no longer there, counts as taken: whoever held it can no longer
    /// say what it was.
    fn follow(&mut self, (old, buckets): (&Plan, &Buckets), new: &Plan, now: u64) {
        let sheets = std::mem::take(&mut self.sheets);
        for ((rule, bucket), mut sheet) in old.rules.iter().zip(buckets).zip(sheets) {
            let stays = new.rules.iter().any(|next| next.holds() && old.is_standing(rule, next));
            if rule.holds() && !stays && *rule.dimension() != Dimension::Concurrency {
                sheet.enter((rule, bucket), now, signed(bucket.held()));
            }
            *self.loose(rule.dimension(), rule.limit().window()) = sheet;
        }
        let sheet = |rule: &crate::engine::Rule| {
            std::mem::take(self.loose(rule.dimension(), rule.limit().window()))
        };
        self.sheets = new.rules.iter().map(sheet).collect();
        self.guesses.clear();
        self.tidy();
        self.list();
    }

    /// Others are taken to have taken so much.
    pub(super) fn guess(&mut self, rule: usize, amount: u64) {
        let round = self.docket.rounds.load(Ordering::Relaxed);
        self.guesses.retain(|guess| guess.is_recent(round));
        match self.guesses.iter_mut().find(|guess| (guess.rule, guess.round) == (rule, round)) {
            Some(guess) => guess.amount = guess.amount.saturating_add(amount),
            None => self.guesses.push(Guess { rule, round, amount }),
        }
    }

    /// What is left to take of what others have taken, after what was guessed of it.
    pub(super) fn unguessed(&mut self, rule: usize, mut amount: u64) -> u64 {
        let round = self.docket.rounds.load(Ordering::Relaxed);
        for guess in self.guesses.iter_mut().filter(|g| g.rule == rule && g.is_recent(round)) {
            let known = amount.min(guess.amount);
            (amount, guess.amount) = (amount - known, guess.amount - known);
        }
        amount
    }

    pub(super) fn rebase(&mut self, back: u64) {
        let loose = self.loose.iter_mut().map(|(.., sheet)| sheet);
        self.sheets.iter_mut().chain(loose).for_each(|sheet| sheet.rebase(back));
        let times = [&mut self.cooling, &mut self.reset_at].into_iter().flatten();
        for time in times.chain([&mut self.since]) {
            *time = time.saturating_sub(back);
        }
    }
}

impl Guess {
    /// Whether what it is about may still be on its way: others tell of it once an interval, and
    /// their answers are read once an interval.
    fn is_recent(&self, round: u64) -> bool {
        self.round.saturating_add(2) >= round
    }
}

impl Slot {
    /// From now on, keeps what changes.
    pub(super) fn track(&mut self, docket: &Arc<Docket>, number: u32, now: u64) {
        let rules = self.plan.rules.len();
        let mut ledger = Box::new(Ledger::new((docket, number), rules, now));
        if self.buckets.iter().any(|bucket| bucket.held() > 0) {
            ledger.list();
        }
        self.line().ledger = Some(ledger);
    }

    /// Notes a reservation, after it was made.
    #[inline]
    pub(super) fn book(&mut self, cost: &Cost, now: u64) {
        if self.line.is_some() {
            self.book_reserved(cost, now);
        }
    }

    #[inline(never)]
    fn book_reserved(&mut self, cost: &Cost, now: u64) {
        self.note(now);
        if let Some((ledger, plan, buckets)) = self.ledger() {
            ledger.reserved((plan, buckets), cost, now);
        }
    }

    /// Notes the end of a reservation.
    #[inline]
    pub(super) fn book_end(
        &mut self,
        reservation: (u32, u64, &Cost),
        charged: Option<&Cost>,
        now: u64,
    ) {
        if let Some((ledger, plan, buckets)) = self.ledger() {
            ledger.ended((plan, buckets), reservation, charged, now);
        }
    }

    /// Notes that a part of a reservation was settled before its end: that of these rules.
    pub(super) fn book_early(&mut self, rule: usize, charged: &Cost, now: u64) {
        let Some((ledger, plan, buckets)) = self.ledger() else { return };
        let (of, sheet) = ((&plan.rules[rule], &buckets[rule]), &mut ledger.sheets[rule]);
        sheet.enter(of, now, signed(of.0.amount(charged)));
        ledger.list();
    }

    /// Notes what was taken without a reservation.
    pub(super) fn book_charge(&mut self, cost: &Cost, now: u64) {
        let Some((ledger, plan, buckets)) = self.ledger() else { return };
        for ((rule, bucket), sheet) in plan.rules.iter().zip(buckets).zip(&mut ledger.sheets) {
            if *rule.dimension() != Dimension::Concurrency {
                sheet.enter((rule, bucket), now, signed(rule.amount(cost)));
            }
        }
        ledger.list();
    }

    /// Before another plan takes the place of this one: what others hold is set aside, and the ledger
    /// follows the new plan.
    pub(super) fn rebook(&mut self, new: &Plan, now: u64) {
        let Self { plan, buckets, line, .. } = self;
        let Some(ledger) = line.as_mut().and_then(|line| line.ledger.as_deref_mut()) else {
            return;
        };
        for (bucket, sheet) in buckets.iter_mut().zip(&ledger.sheets) {
            bucket.drop_hold(sheet.others);
        }
        ledger.follow((plan, buckets), new, now);
    }

    /// After that: what others hold is held of the new plan's buckets.
    pub(super) fn hold_others(&mut self) {
        let Some(ledger) = self.line.as_ref().and_then(|line| line.ledger.as_deref()) else {
            return;
        };
        for (bucket, sheet) in self.buckets.iter_mut().zip(&ledger.sheets) {
            bucket.hold(sheet.others);
        }
    }

    /// Notes that the key was reset: what isn't collected yet is forgotten with the rest.
    pub(super) fn book_reset(&mut self, now: u64) {
        let Some((ledger, ..)) = self.ledger() else { return };
        for sheet in &mut ledger.sheets {
            sheet.forget_before(u64::MAX);
        }
        ledger.guesses.clear();
        (ledger.reset_at, ledger.cooling) = (Some(now), Some(0));
        ledger.list();
    }

    /// Notes until when the key cools down.
    pub(super) fn book_cooling(&mut self, until: u64) {
        if let Some((ledger, ..)) = self.ledger() {
            ledger.cooling = Some(until);
            ledger.list();
        }
    }

    /// What has changed since it was last asked, if anything has.
    pub(super) fn collect(&mut self) -> Option<KeyChanges> {
        let Self { key, plan, buckets, line, .. } = self;
        let line = line.as_deref_mut()?;
        let ledger = line.ledger.as_deref_mut()?;
        ledger.listed = false;
        let mut changes = KeyChanges::new(key.clone());
        for ((rule, bucket), sheet) in plan.rules.iter().zip(buckets).zip(&mut ledger.sheets) {
            // Of a key that counts elsewhere by now, that place says what is held.
            let own = bucket.held().saturating_sub(sheet.others);
            let held = if line.moved { 0 } else { own };
            let limit = rule.limit();
            let told = sheet.collect(limit.dimension(), limit.window(), held);
            let refill = if rule.refills() { limit.amount() } else { 0 };
            changes.buckets.extend(told.map(|told| BucketChanges { refill, ..told }));
        }
        for (dimension, window, sheet) in &mut ledger.loose {
            changes.buckets.extend(sheet.collect(dimension, *window, 0));
        }
        ledger.tidy();
        (changes.cooling_until, changes.reset_at) = (ledger.cooling.take(), ledger.reset_at.take());
        let same = changes.cooling_until.is_none() && changes.reset_at.is_none();
        (!same || !changes.buckets.is_empty()).then_some(changes)
    }

    /// What is kept for a store, and the limits and buckets that it is about.
    #[inline]
    pub(super) fn ledger(&mut self) -> Option<(&mut Ledger, &Plan, &Buckets)> {
        let ledger = self.line.as_mut()?.ledger.as_deref_mut()?;
        Some((ledger, &self.plan, &self.buckets))
    }
}
