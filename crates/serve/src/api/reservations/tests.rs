use std::time::Duration;

use proptest::prelude::*;

use super::*;
use tollgate::Timestamp;
use tollgate::limiter::ManualClock;
use tollgate::quota::{Dimension, Margin, Quota};

/// What may happen to reservations; the first number says to which.
#[derive(Debug, Clone, Copy)]
enum Step {
    Reserve {
        tokens: u64,
        ttl: u64,
    },
    Settle(usize, u64),
    Release(usize),
    Renew(usize, Option<u64>),
    Look(usize),
    Advance(u64),
    /// What the task does at any time.
    Expire,
}

/// What the model knows of a reservation.
#[derive(Debug, Clone, Copy)]
struct Model {
    id: Id,
    tokens: u64,
    ttl: Duration,
    expires_at: Timestamp,
    ended: Option<(How, Timestamp)>,
}

struct World {
    clock: ManualClock,
    limiter: Limiter,
    reservations: Reservations,
    models: Vec<Model>,
    charged: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn whatever_happens_each_reservation_ends_once_and_nothing_stays_held(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.take(step));
        world.take(Step::Expire);
        let open = world.models.iter().filter(|model| model.ended.is_none()).count() as u64;
        prop_assert_eq!(world.in_flight(), open);
        world.close();
        prop_assert_eq!(world.in_flight(), 0);
        let tokens = &world.limiter.stats("k").limits[0];
        prop_assert_eq!((tokens.used, tokens.held), (world.charged, 0));
        prop_assert_eq!(world.reservations.places.available_permits(), MOST);
    }
}

impl World {
    fn new() -> Self {
        Self::with_room(MOST)
    }

    fn with_room(most: usize) -> Self {
        Self::kept_for(most, Duration::MAX)
    }

    fn kept_for(most: usize, kept_for: Duration) -> Self {
        let clock = ManualClock::new();
        let quota = Quota::new().tpd(1 << 50).concurrency(10_000);
        let limiter = Limiter::builder().quota("k", quota).margin(Margin::NONE);
        Self {
            limiter: limiter.clock(clock.clone()).build().unwrap(),
            clock,
            reservations: Reservations::new(most, kept_for),
            models: Vec::new(),
            charged: 0,
        }
    }

    fn take(&mut self, step: Step) {
        let now = self.limiter.now();
        match step {
            Step::Advance(by) => self.clock.advance(Duration::from_nanos(by)),
            Step::Expire => {
                let next = self.reservations.expire(now);
                self.pass(now);
                let open = self.models.iter().filter(|model| model.ended.is_none());
                assert_eq!(next, open.map(|model| model.expires_at).min());
            }
            Step::Reserve { tokens, ttl } => self.reserve(tokens, nanos(ttl), now),
            Step::Settle(at, tokens) => self.end(at, now, How::Settled, tokens),
            Step::Release(at) => self.end(at, now, How::Released, 0),
            Step::Renew(at, ttl) => self.renew(at, ttl.map(nanos), now),
            Step::Look(at) => self.look(at, now),
        }
    }

    fn reserve(&mut self, tokens: u64, ttl: Duration, now: Timestamp) {
        let Some(place) = self.reservations.place() else { return };
        let cost = Cost::new().tokens(tokens);
        let permit = self.limiter.try_acquire("k", &cost).unwrap();
        let expires_at = now + ttl;
        let keys = ["k".into()].into();
        let about = Reservation { keys, cost, granted_at: now, ttl, expires_at, metadata: None };
        let id = self.reservations.open(permit, place, about).expect("it is open");
        self.models.push(Model { id, tokens, ttl, expires_at, ended: None });
    }

    fn end(&mut self, at: usize, now: Timestamp, how: How, tokens: u64) {
        self.pass(now);
        let Some(model) = pick(&mut self.models, at) else { return };
        let result = match how {
            How::Settled => self
                .reservations
                .settle(model.id, now, |_| Ok::<_, Missing>(Cost::new().tokens(tokens))),
            _ => self.reservations.release(model.id, now),
        };
        if model.told(result.map(|ended| (ended.how, ended.ended_at)), (how, now)) {
            model.ended = Some((how, now));
            self.charged += tokens;
        }
    }

    fn renew(&mut self, at: usize, ttl: Option<Duration>, now: Timestamp) {
        self.pass(now);
        let Some(model) = pick(&mut self.models, at) else { return };
        let ttl = ttl.unwrap_or(model.ttl);
        let result = self.reservations.renew(model.id, now, Some(ttl));
        let result = result.map(|about| (How::Closed, about.expires_at));
        if model.told(result, (How::Closed, now + ttl)) {
            (model.ttl, model.expires_at) = (ttl, now + ttl);
        }
    }

    fn look(&mut self, at: usize, now: Timestamp) {
        self.pass(now);
        let Some(model) = pick(&mut self.models, at) else { return };
        match (self.reservations.look(model.id, now), model.ended) {
            (Ok(Known::Open(about)), None) => assert_eq!(about.expires_at, model.expires_at),
            (Ok(Known::Ended(told)), Some(ended)) => assert_eq!((told.how, told.ended_at), ended),
            (told, ended) => panic!("{told:?}, {ended:?}"),
        }
    }

    /// Those whose time has come are over, whether or not anybody looks.
    fn pass(&mut self, now: Timestamp) {
        for model in self.models.iter_mut().filter(|model| model.ended.is_none()) {
            if model.expires_at <= now {
                model.ended = Some((How::Expired, model.expires_at));
                self.charged += model.tokens;
            }
        }
    }

    fn close(&mut self) {
        let now = self.limiter.now();
        self.reservations.expire(now);
        self.pass(now);
        self.reservations.close(now);
        let open = self.models.iter().filter(|model| model.ended.is_none());
        self.charged += open.map(|model| model.tokens).sum::<u64>();
        let place = self.reservations.place().unwrap();
        let permit = self.limiter.try_acquire("k", &Cost::new()).unwrap();
        let about = Reservation {
            keys: ["k".into()].into(),
            cost: Cost::new(),
            granted_at: now,
            ttl: nanos(1),
            expires_at: now + nanos(1),
            metadata: None,
        };
        let permit = self.reservations.open(permit, place, about).expect_err("it is closed");
        permit.release();
    }

    /// Reservations that are open, by the limiter, once those that are due have been ended.
    fn in_flight(&self) -> u64 {
        let limits = self.limiter.stats("k").limits;
        let in_flight =
            |limit: &&tollgate::limiter::LimitStats| limit.dimension == Dimension::Concurrency;
        limits.iter().find(in_flight).map_or(0, |limit| limit.held + limit.used)
    }
}

impl Model {
    /// Whether it was done, and that it was told rightly.
    fn told(&self, result: Result<(How, Timestamp), Missing>, done: (How, Timestamp)) -> bool {
        match (result, self.ended) {
            (Ok(told), None) => assert_eq!(told, done),
            (Err(Missing::Ended(told)), Some(ended)) => {
                assert_eq!((told.how, told.ended_at), ended);
            }
            (result, ended) => panic!("{result:?}, {ended:?}"),
        }
        self.ended.is_none()
    }
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

fn pick(models: &mut [Model], at: usize) -> Option<&mut Model> {
    let at = at.checked_rem(models.len())?;
    models.get_mut(at)
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..MOST * 8;
    prop_oneof![
        3 => (0..100_u64, 1..50_u64).prop_map(|(tokens, ttl)| Step::Reserve { tokens, ttl }),
        2 => (at.clone(), 0..200_u64).prop_map(|(at, tokens)| Step::Settle(at, tokens)),
        1 => at.clone().prop_map(Step::Release),
        1 => (at.clone(), prop::option::of(1..50_u64)).prop_map(|(at, ttl)| Step::Renew(at, ttl)),
        1 => at.prop_map(Step::Look),
        3 => (0..40_u64).prop_map(Step::Advance),
        1 => Just(Step::Expire),
    ]
}

/// More than there are steps, so that how each ended is known.
const MOST: usize = 64;

#[test]
fn thousands_that_expire_at_once_end_a_thousand_a_time_and_none_too_late() {
    let mut world = World::with_room(3_000);
    let then = world.limiter.now();
    (0..2_500).for_each(|_| world.reserve(1, nanos(10), then));
    world.take(Step::Advance(10));
    let now = world.limiter.now();
    // Its time has come, though others end first.
    let held = world.in_flight();
    world.end(2_499, now, How::Settled, 9);
    assert_eq!(world.in_flight(), held - 1);
    for left in [1_499, 499] {
        assert_eq!(world.reservations.expire(now), Some(now));
        assert_eq!(world.in_flight(), left);
    }
    assert_eq!((world.reservations.expire(now), world.in_flight()), (None, 0));
    assert_eq!(world.limiter.stats("k").limits[0].used, 2_500);
}

#[test]
fn as_many_ended_ones_are_known_as_may_be_open() {
    let mut world = World::new();
    let now = world.limiter.now();
    for _ in 0..MOST + 1 {
        world.reserve(1, nanos(1), now);
        world.end(world.models.len() - 1, now, How::Released, 0);
    }
    let known = |model: &&Model| world.reservations.look(model.id, now).is_ok();
    assert_eq!(world.models.iter().filter(known).count(), MOST);
    assert!(matches!(world.reservations.look(world.models[0].id, now), Err(Missing::Unknown)));
}

#[test]
fn nothing_is_left_of_thousands_that_came_and_went_though_nobody_comes_after_them() {
    let mut world = World::kept_for(3_000, nanos(60));
    let then = world.limiter.now();
    for at in 0..2_500 {
        world.reserve(1, nanos(10), then);
        match at % 3 {
            0 => world.end(at, then, How::Settled, 1),
            1 => world.end(at, then, How::Released, 0),
            // Nobody ends it.
            _ => {}
        }
    }
    let mut last = then;
    while let Some(next) = world.reservations.expire(last) {
        last = last.max(next);
    }
    assert_eq!(last, then + nanos(10 + 60));
    let table = world.reservations.table.lock();
    assert_eq!([table.open.len(), table.ended.len(), table.order.len()], [0; 3]);
    assert_eq!(table.open.next(), None);
    assert_eq!(world.reservations.places.available_permits(), 3_000);
}
