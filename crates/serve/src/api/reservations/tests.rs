use std::time::Duration;

use proptest::prelude::*;

use super::*;
use paceline::Timestamp;
use paceline::limiter::ManualClock;
use paceline::quota::{Dimension, Margin, Quota};

/// A step of a test; the index selects a reservation.
#[derive(Debug, Clone, Copy)]
enum Step {
    Reserve {
        tokens: u64,
        ttl: u64,
    },
    Settle(usize, u64),
    Release(usize),
    Renew(usize, Option<u64>),
    Get(usize),
    Advance(u64),
    /// The step of the expiry task.
    Expire,
}

/// The expected state of a reservation.
#[derive(Debug, Clone, Copy)]
struct Model {
    id: ReservationId,
    tokens: u64,
    ttl: Duration,
    expires_at: Timestamp,
    ended: Option<(Outcome, Timestamp)>,
}

struct Harness {
    clock: ManualClock,
    limiter: Limiter,
    reservations: Reservations,
    models: Vec<Model>,
    charged: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn each_reservation_ends_once_and_releases_the_permit(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut harness = Harness::new();
        steps.into_iter().for_each(|step| harness.apply(step));
        harness.apply(Step::Expire);
        let open = harness.models.iter().filter(|model| model.ended.is_none()).count() as u64;
        prop_assert_eq!(harness.in_flight(), open);
        harness.close();
        prop_assert_eq!(harness.in_flight(), 0);
        let tokens = &harness.limiter.stats("k").limits[0];
        prop_assert_eq!((tokens.used, tokens.held), (harness.charged, 0));
        prop_assert_eq!(harness.reservations.admissions.used(), 0);
    }
}

impl Harness {
    fn new() -> Self {
        Self::with_capacity(MAX)
    }

    fn with_capacity(max: usize) -> Self {
        Self::kept_for(max, Duration::MAX)
    }

    fn kept_for(max: usize, kept_for: Duration) -> Self {
        let clock = ManualClock::new();
        let quota = Quota::new().tpd(1 << 50).concurrency(10_000);
        let limiter = Limiter::builder().quota("k", quota).margin(Margin::NONE);
        Self {
            limiter: limiter.clock(clock.clone()).build().unwrap(),
            clock,
            reservations: Reservations::with_capacity(max, kept_for),
            models: Vec::new(),
            charged: 0,
        }
    }

    fn apply(&mut self, step: Step) {
        let now = self.limiter.now();
        match step {
            Step::Advance(by) => self.clock.advance(Duration::from_nanos(by)),
            Step::Expire => {
                let next = self.reservations.expire(now);
                self.expire(now);
                let open = self.models.iter().filter(|model| model.ended.is_none());
                assert_eq!(next, open.map(|model| model.expires_at).min());
            }
            Step::Reserve { tokens, ttl } => self.reserve(tokens, nanos(ttl), now),
            Step::Settle(at, tokens) => self.end(at, now, Outcome::Settled, tokens),
            Step::Release(at) => self.end(at, now, Outcome::Released, 0),
            Step::Renew(at, ttl) => self.renew(at, ttl.map(nanos), now),
            Step::Get(at) => self.get(at, now),
        }
    }

    fn reserve(&mut self, tokens: u64, ttl: Duration, now: Timestamp) {
        let Ok(admission) = self.reservations.admit(ClientAddress::NONE) else { return };
        let cost = Cost::new().tokens(tokens);
        let permit = self.limiter.try_acquire("k", &cost).unwrap();
        let expires_at = now + ttl;
        let keys = ["k".into()].into();
        let reservation =
            Reservation { keys, cost, granted_at: now, ttl, expires_at, metadata: None };
        let id =
            self.reservations.open(permit, admission, reservation).expect("the server is running");
        self.models.push(Model { id, tokens, ttl, expires_at, ended: None });
    }

    fn end(&mut self, at: usize, now: Timestamp, outcome: Outcome, tokens: u64) {
        self.expire(now);
        let Some(model) = pick(&mut self.models, at) else { return };
        let result = match outcome {
            Outcome::Settled => self
                .reservations
                .settle(model.id, now, |_| Ok::<_, ReservationError>(Cost::new().tokens(tokens))),
            _ => self.reservations.release(model.id, now),
        };
        if model.check(result.map(|ended| (ended.outcome, ended.ended_at)), outcome, now) {
            model.ended = Some((outcome, now));
            self.charged += tokens;
        }
    }

    fn renew(&mut self, at: usize, ttl: Option<Duration>, now: Timestamp) {
        self.expire(now);
        let Some(model) = pick(&mut self.models, at) else { return };
        let ttl = ttl.unwrap_or(model.ttl);
        let result = self.reservations.renew(model.id, now, Some(ttl));
        let result = result.map(|reservation| (Outcome::Closed, reservation.expires_at));
        if model.check(result, Outcome::Closed, now + ttl) {
            (model.ttl, model.expires_at) = (ttl, now + ttl);
        }
    }

    fn get(&mut self, at: usize, now: Timestamp) {
        self.expire(now);
        let Some(model) = pick(&mut self.models, at) else { return };
        match (self.reservations.get(model.id, now), model.ended) {
            (Ok(ReservationState::Open(reservation)), None) => {
                assert_eq!(reservation.expires_at, model.expires_at)
            }
            (Ok(ReservationState::Ended(actual)), Some(ended)) => {
                assert_eq!((actual.outcome, actual.ended_at), ended)
            }
            (actual, ended) => panic!("{actual:?}, {ended:?}"),
        }
    }

    /// Expires reservations in the model.
    fn expire(&mut self, now: Timestamp) {
        for model in self.models.iter_mut().filter(|model| model.ended.is_none()) {
            if model.expires_at <= now {
                model.ended = Some((Outcome::Expired, model.expires_at));
                self.charged += model.tokens;
            }
        }
    }

    fn close(&mut self) {
        let now = self.limiter.now();
        self.reservations.expire(now);
        self.expire(now);
        self.reservations.close(now);
        let open = self.models.iter().filter(|model| model.ended.is_none());
        self.charged += open.map(|model| model.tokens).sum::<u64>();
        let admission = self.reservations.admit(ClientAddress::NONE).unwrap();
        let permit = self.limiter.try_acquire("k", &Cost::new()).unwrap();
        let reservation = Reservation {
            keys: ["k".into()].into(),
            cost: Cost::new(),
            granted_at: now,
            ttl: nanos(1),
            expires_at: now + nanos(1),
            metadata: None,
        };
        let permit = self
            .reservations
            .open(permit, admission, reservation)
            .expect_err("the server is closed");
        permit.release();
    }

    /// Returns the number of requests in flight.
    fn in_flight(&self) -> u64 {
        let limits = self.limiter.stats("k").limits;
        let in_flight =
            |limit: &&paceline::limiter::LimitStats| limit.dimension == Dimension::Concurrency;
        limits.iter().find(in_flight).map_or(0, |limit| limit.held + limit.used)
    }
}

impl Model {
    /// Asserts the result of an operation; returns true if it succeeded.
    fn check(
        &self,
        result: Result<(Outcome, Timestamp), ReservationError>,
        outcome: Outcome,
        at: Timestamp,
    ) -> bool {
        match (result, self.ended) {
            (Ok(actual), None) => assert_eq!(actual, (outcome, at)),
            (Err(ReservationError::Ended(actual)), Some(ended)) => {
                assert_eq!((actual.outcome, actual.ended_at), ended);
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
    let at = 0..MAX * 8;
    prop_oneof![
        3 => (0..100_u64, 1..50_u64).prop_map(|(tokens, ttl)| Step::Reserve { tokens, ttl }),
        2 => (at.clone(), 0..200_u64).prop_map(|(at, tokens)| Step::Settle(at, tokens)),
        1 => at.clone().prop_map(Step::Release),
        1 => (at.clone(), prop::option::of(1..50_u64)).prop_map(|(at, ttl)| Step::Renew(at, ttl)),
        1 => at.prop_map(Step::Get),
        3 => (0..40_u64).prop_map(Step::Advance),
        1 => Just(Step::Expire),
    ]
}

/// More than the number of steps, so that no end is forgotten.
const MAX: usize = 64;

#[test]
fn simultaneous_expiries_end_in_batches() {
    let mut harness = Harness::with_capacity(6_000);
    let then = harness.limiter.now();
    (0..2_500).for_each(|_| harness.reserve(1, nanos(10), then));
    harness.apply(Step::Advance(10));
    let now = harness.limiter.now();
    // This reservation has expired, although earlier ones have not been ended yet.
    let held = harness.in_flight();
    harness.end(2_499, now, Outcome::Settled, 9);
    assert_eq!(harness.in_flight(), held - 1);
    for left in [1_499, 499] {
        assert_eq!(harness.reservations.expire(now), Some(now));
        assert_eq!(harness.in_flight(), left);
    }
    assert_eq!((harness.reservations.expire(now), harness.in_flight()), (None, 0));
    assert_eq!(harness.limiter.stats("k").limits[0].used, 2_500);
}

#[test]
fn ended_reservations_are_bounded_like_open_ones() {
    let mut harness = Harness::new();
    let now = harness.limiter.now();
    for _ in 0..MAX + 1 {
        harness.reserve(1, nanos(1), now);
        harness.end(harness.models.len() - 1, now, Outcome::Released, 0);
    }
    let known = |model: &&Model| harness.reservations.get(model.id, now).is_ok();
    assert_eq!(harness.models.iter().filter(known).count(), MAX);
    assert!(matches!(
        harness.reservations.get(harness.models[0].id, now),
        Err(ReservationError::Unknown)
    ));
}

#[test]
fn ended_reservations_are_forgotten_without_new_requests() {
    let mut harness = Harness::kept_for(6_000, nanos(60));
    let then = harness.limiter.now();
    for at in 0..2_500 {
        harness.reserve(1, nanos(10), then);
        match at % 3 {
            0 => harness.end(at, then, Outcome::Settled, 1),
            1 => harness.end(at, then, Outcome::Released, 0),
            // The reservation expires.
            _ => {}
        }
    }
    let mut last = then;
    while let Some(next) = harness.reservations.expire(last) {
        last = last.max(next);
    }
    assert_eq!(last, then + nanos(10 + 60));
    let table = harness.reservations.table.lock();
    assert_eq!([table.open.len(), table.ended.len(), table.order.len()], [0; 3]);
    assert_eq!(table.open.next_expiry(), None);
    assert_eq!(harness.reservations.admissions.used(), 0);
}
