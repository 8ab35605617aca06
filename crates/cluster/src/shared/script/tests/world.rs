//! Keys with random rules, each with the engine's buckets for comparison.

use paceline_limiter::engine::{self, Bucket, Rule, Shortfall, Wait};
use paceline_limiter::quota::{
    Algorithm, Calendar, Cost, Dimension, Limit, Margin, Period, SettleAt, Window,
};

use paceline_limiter::Timestamp;
use std::slice::from_ref;
use std::time::Duration;

use super::super::view::Amounts;
use super::super::{Call, Id, Operation, Order, Part, ServerTime};
use super::random::Random;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A key, and its state in the engine.
pub(super) struct TestKey {
    name: Vec<u8>,
    pub(super) rules: Vec<Rule>,
    pub(super) buckets: Vec<Bucket>,
    open: Vec<(Id, u64, Cost)>,
    /// The tolerance in microseconds after a change of limits, since the server counts whole
    /// microseconds.
    pub(super) tolerance: u64,
    max_amount: u64,
    /// True if amounts are small, so that windows have long logs.
    has_small_amounts: bool,
    limits: Vec<LimitSpec>,
    margin: Margin,
    settle: SettleAt,
}

/// A random limit.
struct LimitSpec {
    dimension: Dimension,
    amount: u64,
    window: Window,
    algorithm: Algorithm,
    burst: u64,
    is_on_calendar: bool,
}

/// The decision of the engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EngineResult {
    Done,
    Refused {
        /// The rules that require the same wait in microseconds.
        rules: Vec<usize>,
        wait: Wait,
        /// When all rules, each for itself, admit the amounts if nothing is held.
        earliest: Timestamp,
    },
}

impl TestKey {
    pub(super) fn new(random: &mut Random, name: String) -> Self {
        let margin = random.pick(&[Margin::NONE, Margin::default()]);
        let settle = random.pick(&[SettleAt::Send, SettleAt::Send, SettleAt::End]);
        let max_amount = random.pick(&[5, 50, 30_011, 4_000_037, 1_000_000_007, 4_000_000_000_039]);
        let (has_small_amounts, is_fast) = (random.one_in(3), random.one_in(2));
        let mut limits: Vec<LimitSpec> = Vec::new();
        for _ in 0..=random.below(4) {
            let dimension = random.pick(&DIMENSIONS);
            let window = random.pick(&WINDOWS) * (1 + random.below(3));
            let window = Window::new(Duration::from_millis(window)).unwrap();
            if !limits.iter().any(|limit| limit.dimension == dimension && limit.window == window) {
                let (algorithm, burst) = algorithm(random, max_amount, is_fast);
                let is_on_calendar = !is_fast && random.one_in(8);
                let amount = 1 + random.below(max_amount);
                limits.push(LimitSpec {
                    dimension,
                    amount,
                    window,
                    algorithm,
                    burst,
                    is_on_calendar,
                });
            }
        }
        let open = Vec::new();
        let name = name.into_bytes();
        let (rules, buckets) = (Vec::new(), Vec::new());
        let mut key = Self {
            name,
            rules,
            buckets,
            open,
            tolerance: 0,
            max_amount,
            has_small_amounts,
            limits,
            margin,
            settle,
        };
        key.rules = key.build_rules(random);
        key.buckets = key.rules.iter().map(Bucket::new).collect();
        key
    }

    fn build_rules(&self, random: &mut Random) -> Vec<Rule> {
        let debt = random.one_in(3);
        let rule = |spec: &LimitSpec| {
            let limit = match spec.is_on_calendar {
                true => Limit::on_calendar(spec.dimension.clone(), spec.amount, &PACIFIC),
                false => Limit::new(spec.dimension.clone(), spec.amount, spec.window),
            };
            let limit = limit.unwrap();
            let limit = match (spec.is_on_calendar, spec.algorithm) {
                (true, _) => limit,
                (false, Algorithm::TokenBucket) => limit.with_burst(spec.burst),
                (false, algorithm) => limit.with_algorithm(algorithm),
            };
            let limit = if debt { limit.with_debt() } else { limit };
            Rule::new(&limit, spec.algorithm, self.margin, self.settle)
        };
        let mut seen = Vec::new();
        let mut rules: Vec<Rule> = self.limits.iter().map(rule).collect();
        rules.retain(|rule| {
            let name = (rule.dimension().clone(), rule.limit().window());
            let first = !seen.contains(&name);
            seen.push(name);
            first
        });
        rules
    }

    /// Makes a random call to the engine; returns the same call for the script, and the engine's
    /// decision.
    pub(super) fn step(
        &mut self,
        random: &mut Random,
        id: Id,
        now: u64,
    ) -> (OwnedCall, EngineResult) {
        let time = at(now * 1_000);
        let call = |key: &Self, operation, id, cost: &Cost| OwnedCall {
            name: key.name.clone(),
            operation,
            id,
            amounts: key.rules.iter().map(|rule| rule.amount(cost)).collect(),
        };
        let choice = random.below(20);
        if choice < 9 && !self.open.is_empty() {
            let index = usize::try_from(random.below(self.open.len() as u64)).unwrap();
            let (id, sent, cost) = self.open.swap_remove(index);
            let sent = at(sent * 1_000);
            if choice < 2 {
                engine::release(&self.rules, &mut self.buckets, sent, &cost, time);
                return (
                    call(self, Operation::Release { unsure: false }, id, &cost),
                    EngineResult::Done,
                );
            }
            let actual = if choice < 4 { cost.clone() } else { self.cost(random) };
            engine::settle(&self.rules, &mut self.buckets, sent, &cost, &actual, time);
            return (
                call(self, Operation::Settle { unsure: false }, id, &actual),
                EngineResult::Done,
            );
        }
        let cost = self.cost(random);
        if choice == 19 {
            engine::charge(&self.rules, &mut self.buckets, &cost, time);
            return (call(self, Operation::Charge, id, &cost), EngineResult::Done);
        }
        if choice == 18 {
            return (call(self, Operation::Read, id, &cost), EngineResult::Done);
        }
        let expected_result = match engine::reserve(&self.rules, &mut self.buckets, &cost, time) {
            Ok(()) => {
                self.open.push((id, now, cost.clone()));
                EngineResult::Done
            }
            Err(short) => EngineResult::Refused {
                rules: self.rules_with_wait(short, &cost, time),
                wait: short.wait,
                earliest: self.earliest(&cost, time),
            },
        };
        (
            call(
                self,
                Operation::Reserve { ttl: 1 << 50, waits: false, order: Order::ARRIVAL },
                id,
                &cost,
            ),
            expected_result,
        )
    }

    fn amount(random: &mut Random, large: u64) -> u64 {
        match random.below(12) {
            0 => 0,
            1..6 => 1,
            6..11 => random.below(large / 3 + 2),
            _ => random.below(large + large / 4 + 2),
        }
    }

    fn rules_with_wait(&self, short: Shortfall, cost: &Cost, time: Timestamp) -> Vec<usize> {
        let same = |index: &usize| {
            let one = *index..index + 1;
            let own = engine::check(&self.rules[one.clone()], &self.buckets[one], cost, time);
            own.is_err_and(|own| micros(own.wait) == micros(short.wait))
        };
        (0..self.rules.len()).filter(same).chain([short.rule]).collect()
    }

    fn earliest(&self, cost: &Cost, time: Timestamp) -> Timestamp {
        let earliest = |(rule, bucket): (&Rule, &Bucket)| {
            let mut bucket = bucket.clone();
            bucket.drop_hold(u64::MAX);
            let checked = engine::check(from_ref(rule), from_ref(&bucket), cost, time);
            match checked.map_err(|short| short.wait) {
                Err(Wait::At(time)) => time,
                _ => time,
            }
        };
        self.rules.iter().zip(&self.buckets).map(earliest).max().unwrap_or(time)
    }

    /// Changes the limits as [`Bucket::carry`] does, except for long logs, which the engine
    /// shortens and the script keeps.
    pub(super) fn change(&mut self, random: &mut Random, now: u64) {
        if self.has_small_amounts {
            return;
        }
        for limit in &mut self.limits {
            if random.one_in(2) {
                limit.amount = 1 + random.below(self.max_amount);
            }
        }
        let rules = self.build_rules(random);
        for ((bucket, old), new) in self.buckets.iter_mut().zip(&self.rules).zip(&rules) {
            *bucket = bucket.carry(old, new, at(now * 1_000));
        }
        self.rules = rules;
        self.tolerance = 1;
    }

    fn cost(&self, random: &mut Random) -> Cost {
        let mut amount = |large: u64| match self.has_small_amounts {
            true => random.below(3),
            false => Self::amount(random, large),
        };
        let cost = Cost::new().requests(amount(5)).tokens(amount(self.max_amount));
        cost.input_tokens(amount(self.max_amount)).custom("images", amount(self.max_amount))
    }
}

fn micros(wait: Wait) -> Wait {
    match wait {
        Wait::At(time) => Wait::At(at(time.as_nanos().div_ceil(1_000))),
        wait => wait,
    }
}

/// A call with owned data.
#[derive(Debug)]
pub(super) struct OwnedCall {
    pub(super) name: Vec<u8>,
    pub(super) operation: Operation,
    pub(super) id: Id,
    pub(super) amounts: Amounts,
}

impl OwnedCall {
    pub(super) fn part<'a>(&'a self, rules: &'a [Rule]) -> Part<'a> {
        let amounts = self.amounts.clone();
        Part { name: &self.name, rules, amounts, lease: None, view: None, wants_uses: false }
    }

    pub(super) fn call<'a>(&self, parts: &'a [Part<'a>], now: u64) -> Call<'a> {
        let time = ServerTime { expected: now, ..ServerTime::default() };
        Call { operation: self.operation, id: self.id, time, generation: 0, parts }
    }
}

/// Returns a random algorithm and burst; if `is_fast`, an algorithm that the script's fast path
/// supports.
fn algorithm(random: &mut Random, max_amount: u64, is_fast: bool) -> (Algorithm, u64) {
    let burst = if random.one_in(3) { 1 + random.below(max_amount) } else { 0 };
    if is_fast {
        return (Algorithm::TokenBucket, burst);
    }
    let algorithm = random.pick(&[
        Algorithm::TokenBucket,
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::ClockWindow,
    ]);
    (algorithm, burst)
}

static PACIFIC: std::sync::LazyLock<Calendar> =
    std::sync::LazyLock::new(|| Calendar::new(Period::Day, "America/Los_Angeles").unwrap());

static DIMENSIONS: std::sync::LazyLock<Vec<Dimension>> = std::sync::LazyLock::new(|| {
    let images = Dimension::custom("images");
    let tokens = [Dimension::Tokens, Dimension::Tokens, Dimension::InputTokens];
    [Dimension::Requests, Dimension::Concurrency, images].into_iter().chain(tokens).collect()
});

/// Window lengths in milliseconds.
const WINDOWS: [u64; 8] = [1, 37, 1_000, 10_007, 60_000, 3_600_000, 86_400_000, 2_592_000_000];
