//! Random rules and events for the property tests, as small numbers that are resolved against the
//! rules, so that boundaries are hit often.

use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Share, Window};
use proptest::collection::vec;
use proptest::prelude::*;

use super::reference::{FixedWindow, NamedWindow, Reference, SlidingWindow, TokenBucket};
use super::zone_calendars::{ZONE_CALENDARS, ZoneCalendar, days};
use paceline_testing::full::full_or;

pub(super) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: full_or(100_000, 5_000),
        max_shrink_iters: 50_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// One limit, its algorithm (a clock window if on a calendar), and the time of settlement.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) dimension: Dimension,
    pub(super) algorithm: Algorithm,
    /// The burst of a token bucket; 0 for the amount.
    pub(super) burst: u64,
    pub(super) amount: u64,
    pub(super) window: u64,
    pub(super) settle: SettleAt,
    pub(super) civil: Option<&'static ZoneCalendar>,
    pub(super) debt: bool,
    /// The share of the limit in percent.
    pub(super) share: u8,
}

impl Spec {
    pub(super) fn rule(&self, margin: Margin) -> Rule {
        let window = Window::new(Duration::from_nanos(self.window)).unwrap();
        let limit = match self.civil {
            Some(civil) => Limit::on_calendar(self.dimension.clone(), self.amount, &civil.calendar),
            None => Limit::new(self.dimension.clone(), self.amount, window),
        };
        let limit = if self.debt { limit.map(Limit::with_debt) } else { limit }.unwrap();
        let limit = match self.civil {
            None if self.burst > 0 => limit.with_burst(self.burst),
            None if self.share < 100 => limit.with_algorithm(self.algorithm),
            _ => limit,
        };
        let limit = limit.with_share(Share::percent(self.share).unwrap());
        Rule::new(&limit, self.algorithm, margin, self.settle)
    }

    /// Returns the largest cost that the limit can hold.
    pub(super) fn capacity(&self) -> u64 {
        if self.burst > 0 { self.burst } else { self.amount }
    }

    /// Returns the capacity that a request of this amount needs: with debt, at most the whole limit.
    pub(super) fn needed(&self, amount: u64) -> u64 {
        if self.debt { amount.min(self.capacity()) } else { amount }
    }

    /// Returns a provider with the same algorithm, amount and window.
    pub(super) fn reference(&self) -> Box<dyn Reference> {
        match self.algorithm {
            Algorithm::TokenBucket => {
                Box::new(TokenBucket::new(self.amount, self.window, self.capacity()))
            }
            Algorithm::FixedWindow => Box::new(FixedWindow::new(self.amount, self.window)),
            Algorithm::ClockWindow => self.named_window(),
            _ => Box::new(SlidingWindow::new(self.amount, self.window)),
        }
    }

    /// Returns the same as [`Self::reference`], except for a fixed window: not charged at send, its phase
    /// is unknown, and it becomes a sliding window.
    pub(super) fn reference_at_settle(&self) -> Box<dyn Reference> {
        match self.algorithm {
            Algorithm::FixedWindow => Box::new(SlidingWindow::new(self.amount, self.window)),
            _ => self.reference(),
        }
    }

    fn named_window(&self) -> Box<dyn Reference> {
        let window = self.window;
        match self.civil {
            Some(civil) => Box::new(NamedWindow::new(self.amount, |time| civil.name(time))),
            None => Box::new(NamedWindow::new(self.amount, move |time| {
                (i64::try_from(time / window).unwrap(), 0)
            })),
        }
    }

    pub(super) fn is_concurrency(&self) -> bool {
        self.dimension == Dimension::Concurrency
    }

    /// Returns true if the engine uses a fixed window that starts with the first request.
    pub(super) fn is_anchored(&self) -> bool {
        self.algorithm == Algorithm::FixedWindow && self.settle == SettleAt::Send
    }

    /// Returns true if the engine may close the window although it has capacity.
    pub(super) fn closes(&self) -> bool {
        self.is_anchored() || self.algorithm == Algorithm::ClockWindow
    }
}

/// An event, with one byte each for the action, the time step, three sizes, the request, the share and
/// the delay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) act: Act,
    pub(super) step: u8,
    pub(super) sizes: [u8; 3],
    pub(super) pick: u8,
    pub(super) share: u8,
    pub(super) delay: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Reserve,
    Settle,
    Release,
}

impl From<u64> for Event {
    fn from(bits: u64) -> Self {
        let [act, step, a, b, c, pick, share, delay] = bits.to_le_bytes();
        let act = match act % 16 {
            0..=9 => Act::Reserve,
            10..=13 => Act::Settle,
            _ => Act::Release,
        };
        Self { act, step, sizes: [a, b, c], pick, share, delay }
    }
}

/// Returns an amount for a limit of `capacity`: zero, one, all, half, or a share of it.
pub(super) fn size(byte: u8, capacity: u64) -> u64 {
    let part = u64::from(byte / 8);
    let share = |of: u64| u64::try_from(u128::from(capacity) * u128::from(part) / u128::from(of));
    match byte % 8 {
        0 => 0,
        1 | 2 => 1,
        3 => capacity,
        4 => capacity / 2 + 1,
        5 => share(32).unwrap(),
        6 => capacity - 1,
        _ => 1 + share(300).unwrap(),
    }
}

pub(super) fn events(most: usize) -> impl Strategy<Value = Vec<Event>> {
    vec(any::<u64>().prop_map(Event::from), 1..=most)
}

/// Generates one to three limits with any settlement, and sometimes one on concurrency.
pub(super) fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let settle = prop_oneof![Just(SettleAt::Send), Just(SettleAt::FirstUsage), Just(SettleAt::End)];
    (vec(spec(settle), 1..=3), 0..20_u64).prop_map(|(mut specs, in_flight)| {
        if (1..=4).contains(&in_flight) {
            let last = specs[0].clone();
            specs.push(Spec { dimension: Dimension::Concurrency, amount: in_flight, ..last });
        }
        specs
    })
}

/// Generates one to three limits that are all charged at send.
pub(super) fn specs_at_send() -> impl Strategy<Value = Vec<Spec>> {
    vec(spec(Just(SettleAt::Send)), 1..=3)
}

fn spec(settle: impl Strategy<Value = SettleAt>) -> impl Strategy<Value = Spec> {
    let dimension =
        prop_oneof![Just(Dimension::Requests), Just(Dimension::Tokens), Just(TOKENS_IN)];
    let more = (0..10 * ZONE_CALENDARS.len(), 0..6_u8);
    (dimension, algorithm(), amount(), window(), settle, more).prop_map(
        |(dimension, (algorithm, burst), amount, window, settle, (civil, debt))| {
            let civil = ZONE_CALENDARS.get(civil / 2);
            let (algorithm, burst, window) = match civil {
                Some(civil) => (Algorithm::ClockWindow, 0, civil.calendar.window().as_nanos()),
                None => (algorithm, burst, window),
            };
            Spec {
                dimension,
                algorithm,
                burst,
                amount,
                window,
                settle,
                civil,
                debt: debt == 0,
                share: 100,
            }
        },
    )
}

/// An algorithm, and the burst of a token bucket.
fn algorithm() -> impl Strategy<Value = (Algorithm, u64)> {
    (0..10_u64, 1..30_u64).prop_map(|(kind, burst)| match kind {
        0 | 1 => (Algorithm::SlidingWindow, 0),
        2 | 3 => (Algorithm::FixedWindow, 0),
        4 | 5 => (Algorithm::ClockWindow, 0),
        6 | 7 => (Algorithm::TokenBucket, burst),
        _ => (Algorithm::TokenBucket, 0),
    })
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 1..=12_u64, 2 => 13..=5_000_u64, 1 => Just(39), 1 => 1..1_u64 << 31]
}

/// Generates round windows, windows that no rate divides, the shortest and the longest.
pub(super) fn window() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1_000_000),
        Just(1_000_000_000),
        Just(60_000_000_000),
        Just(366 * 86_400 * 1_000_000_000),
        1_000_000..3_000_000_u64,
        1_000_000..100_000_000_000_u64,
    ]
}

/// Generates a recent time, a time near the end of a calendar window, or one of the first nanoseconds
/// of 1970.
pub(super) fn start() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_800_000_000_000_000_000), days(), 0..3_u64]
}

const TOKENS_IN: Dimension = Dimension::InputTokens;
