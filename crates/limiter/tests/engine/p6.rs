//! P6: no panic, no overflow, no endless loop and bounded memory, for all amounts, costs, times
//! (including earlier ones), windows and margins, and for all calls in any order, including invalid
//! ones.

use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{
    Bucket, Rule, Timeline, Wait, charge, check, commit, release, reserve, settle,
};
use paceline_limiter::quota::{Algorithm, Cost, Dimension, Limit, Margin, SettleAt, Window};
use proptest::collection::vec;
use proptest::prelude::*;

use super::at;
use super::schedule::config;
use super::zone_calendars::ZONE_CALENDARS;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p6_engine_neither_panics_nor_hangs(
        rules in vec(rule(), 1..=4), others in vec(rule(), 4), start in edge(),
        calls in vec(call(), 1..=24),
    ) {
        let buckets = rules.iter().map(Bucket::new).collect();
        let mut engine = Engine { rules, buckets, now: start, time: Timeline::default() };
        for call in calls {
            engine.set_time(&call);
            engine.call(&call, &others)?;
            engine.check_levels()?;
        }
    }
}

#[test]
fn tests_are_built_with_overflow_checks() {
    let add = |a: u64| std::hint::black_box(a) + 1;
    let overflowed = std::panic::catch_unwind(|| add(std::hint::black_box(u64::MAX)));
    assert!(overflowed.is_err() && cfg!(debug_assertions));
}

struct Engine {
    rules: Vec<Rule>,
    buckets: Vec<Bucket>,
    now: u64,
    time: Timeline,
}

#[derive(Debug, Clone)]
struct Call {
    kind: u8,
    pass: u8,
    at: u64,
    reserved: Cost,
    actual: Cost,
}

impl Engine {
    /// Sets any time, or a time near the boundaries of a window.
    fn set_time(&mut self, call: &Call) {
        let window = self.rules[0].limit().window().as_nanos();
        self.now = match call.pass % 12 {
            0 => call.at,
            1 => self.now.saturating_add(window),
            2 => self.now.saturating_add(window - 1),
            3 => self.now.saturating_add(1),
            4 => self.now.saturating_sub(1),
            5 => self.now.saturating_sub(window),
            6 => self.now.saturating_add(call.at % window),
            7 => self.now.saturating_sub(call.at % window),
            8 => self.wait(call),
            _ => self.now,
        };
    }

    fn wait(&self, call: &Call) -> u64 {
        match check(&self.rules, &self.buckets, &call.reserved, at(self.now)).map_err(|s| s.wait) {
            Err(Wait::At(time)) => time.as_nanos(),
            _ => self.now,
        }
    }

    fn call(&mut self, call: &Call, others: &[Rule]) -> Result<(), TestCaseError> {
        let Call { at: sent, reserved, actual, .. } = call;
        let (now, sent) = (at(self.now), at(*sent));
        let (rules, buckets) = (&self.rules, &mut self.buckets);
        match call.kind % 13 {
            0..=3 => {
                let before = buckets.clone();
                if reserve(rules, buckets, reserved, now).is_err() {
                    prop_assert_eq!(&before, buckets);
                }
            }
            4 => commit(rules, buckets, reserved, now),
            5 => settle(rules, buckets, sent, reserved, actual, now),
            6 => settle(rules, buckets, now, reserved, actual, now),
            7 => release(rules, buckets, sent, reserved, now),
            8 => release(rules, buckets, now, reserved, now),
            9 => charge(rules, buckets, actual, now),
            10 => self.advance(sent),
            11 => self.absorb(others, sent),
            _ => self.carry(others),
        }
        Ok(())
    }

    fn advance(&mut self, reading: Timestamp) {
        let (now, back) = self.time.advance(reading);
        self.now = now.as_nanos();
        self.buckets.iter_mut().for_each(|bucket| bucket.rebase(back));
    }

    /// State saved under one rule can be restored under any other.
    fn absorb(&mut self, others: &[Rule], saved_at: Timestamp) {
        for ((rule, bucket), other) in self.rules.iter().zip(&mut self.buckets).zip(others) {
            let saved = bucket.save(rule, saved_at);
            bucket.absorb(rule, &saved, at(self.now));
            Bucket::new(other).absorb(other, &saved, at(self.now));
        }
    }

    fn carry(&mut self, others: &[Rule]) {
        for ((rule, bucket), other) in self.rules.iter_mut().zip(&mut self.buckets).zip(others) {
            if rule.dimension() == other.dimension() {
                *bucket = bucket.carry(rule, other, at(self.now));
                *rule = other.clone();
            }
        }
    }

    fn check_levels(&self) -> Result<(), TestCaseError> {
        for (rule, bucket) in self.rules.iter().zip(&self.buckets) {
            let level = bucket.level(rule, at(self.now));
            let most = match rule.dimension() {
                Dimension::Concurrency => rule.limit().amount(),
                _ => rule.limit().burst().unwrap_or(rule.limit().amount()),
            };
            prop_assert!(level.available <= most, "{:?} of {:?}", level, rule);
            prop_assert!(bucket.save(rule, at(self.now)).taken.len() <= 400);
            bucket.is_fresh(rule, at(self.now));
        }
        Ok(())
    }
}

fn call() -> impl Strategy<Value = Call> {
    (any::<u8>(), any::<u8>(), edge(), cost(), cost())
        .prop_map(|(kind, pass, at, reserved, actual)| Call { kind, pass, at, reserved, actual })
}

fn cost() -> impl Strategy<Value = Cost> {
    (edge(), edge(), edge()).prop_map(|(requests, tokens, images)| {
        Cost::new().requests(requests).tokens(tokens).custom("images", images)
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let shape = (0..5_u8, 0..8_u8, 0..3_u8, any::<bool>());
    let margin = (0..100_u8, edge())
        .prop_map(|(percent, lag)| Margin::new(percent, Duration::from_nanos(lag)).unwrap());
    (shape, edge(), edge(), edge(), margin).prop_map(
        |((dimension, algorithm, settle, debt), amount, window, burst, margin)| {
            let nanos = window.clamp(1_000_000, 366 * Window::DAY.as_nanos());
            let window = Window::new(Duration::from_nanos(nanos)).unwrap();
            let civil = &ZONE_CALENDARS[usize::try_from(burst).unwrap() % ZONE_CALENDARS.len()];
            let (dimension, amount) = (self::dimension(dimension), amount.max(1));
            let limit = match algorithm {
                0 | 1 => Limit::on_calendar(dimension, amount, &civil.calendar),
                _ => Limit::new(dimension, amount, window),
            };
            let limit = if debt { limit.map(Limit::with_debt) } else { limit }.unwrap();
            let burst = if algorithm == 6 { burst } else { 0 };
            let algorithm = match algorithm {
                2 => Algorithm::SlidingWindow,
                3 => Algorithm::FixedWindow,
                4 | 5 => Algorithm::ClockWindow,
                _ => Algorithm::TokenBucket,
            };
            let settle = [SettleAt::Send, SettleAt::FirstUsage, SettleAt::End][usize::from(settle)];
            let limit = match (limit.calendar(), algorithm) {
                (Some(_), _) => limit,
                (None, Algorithm::TokenBucket) => limit.with_burst(burst),
                (None, _) => limit.with_algorithm(algorithm),
            };
            Rule::new(&limit, algorithm, margin, settle)
        },
    )
}

fn dimension(kind: u8) -> Dimension {
    match kind {
        0 => Dimension::Requests,
        1 | 2 => Dimension::Tokens,
        3 => Dimension::custom("images"),
        _ => Dimension::Concurrency,
    }
}

/// Generates any number, often one next to an overflow boundary.
fn edge() -> impl Strategy<Value = u64> {
    any::<u64>().prop_map(|bits| match bits >> 60 {
        0..=2 => bits % 3,
        3 | 4 => u64::MAX - bits % 3,
        5 => (1 << 32) - 1 + bits % 3,
        6 => (1 << 63) - 1 + bits % 3,
        7 => 1_000_000 - 1 + bits % 3,
        8 => 366 * 86_400 * 1_000_000_000 - bits % 3,
        9 => 1_800_000_000_000_000_000 + bits % 1_000_000_000,
        10 => bits % 1_000_000_000,
        11 => 1 << (bits % 64),
        12 => (1 << (bits % 64)) - 1,
        _ => bits << 4,
    })
}
