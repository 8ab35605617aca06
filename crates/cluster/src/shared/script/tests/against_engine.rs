//! Runs the same random schedules through the script and the engine, and compares the results.

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{Rule, Wait};
use redis::Pipeline;

use super::super::{Id, Outcome, Response, RetryAfter};
use super::random::Random;
use super::server::Server;
use super::world::{EngineResult, OwnedCall, TestKey};
use paceline_testing::full::full_or;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

#[test]
fn random_schedule_matches_the_engine() {
    let mut server = Server::start();
    let mut ids = 0;
    for seed in 0..full_or(200, 20) {
        schedule(&mut server, seed, &mut ids);
    }
}

/// A call and its expected response.
struct Step {
    call: OwnedCall,
    rules: Vec<Rule>,
    now: u64,
    expected_result: EngineResult,
    levels: Vec<(u64, u64)>,
    tolerance: u64,
}

fn schedule(server: &mut Server, seed: u64, ids: &mut u128) {
    let mut random = Random(seed);
    let count = random.pick(&[1, 3]);
    let mut keys: Vec<TestKey> =
        (0..count).map(|key| TestKey::new(&mut random, format!("t:{{{seed}}}{key}"))).collect();
    let mut now = START + random.below(86_400_000_000);
    let pace = random.pick(&[1, 1_000, 50_000, 1_000_000, 60_000_000, 3_600_000_000]);
    let (mut steps, mut due) = (Vec::new(), now);
    let changes = random.one_in(3);
    for _ in 0..STEPS / count {
        now += if random.one_in(3) { 0 } else { random.below(pace * 2) };
        // Aligns to whole and half seconds, the edges of windows.
        if random.one_in(4) {
            now = now.next_multiple_of(HALF_SECOND);
        }
        // Retries exactly when the request should fit, or just before. After a change of limits, the
        // script may be off by one microsecond.
        if !changes && random.one_in(4) && due > now && due < now + MONTH {
            now = due - random.below(2);
        }
        let key = &mut keys[usize::try_from(random.below(count)).unwrap()];
        if changes && random.one_in(60) {
            key.change(&mut random, now);
        }
        *ids += 1;
        let (call, expected_result) = key.step(&mut random, Id(ids.to_be_bytes()), now);
        if let EngineResult::Refused { wait: Wait::At(time), .. } = expected_result {
            due = time.as_nanos().div_ceil(1_000);
        }
        let level = |(rule, bucket): (&Rule, &paceline_limiter::engine::Bucket)| {
            let level = bucket.level(rule, at(now * 1_000));
            (level.used, level.held)
        };
        let levels = key.rules.iter().zip(&key.buckets).map(level).collect();
        let (rules, tolerance) = (key.rules.clone(), key.tolerance);
        steps.push(Step { call, rules, now, expected_result, levels, tolerance });
    }
    compare(server, seed, &steps);
}

fn compare(server: &mut Server, seed: u64, steps: &[Step]) {
    let first = &steps[0];
    let parts = [first.call.part(&first.rules)];
    let first_response = server.call(&first.call.call(&parts, first.now), first.now);
    assert_same(&first_response, first, seed, 0);
    let mut calls = Pipeline::new();
    for step in &steps[1..] {
        let parts = [step.call.part(&step.rules)];
        server.queue(&mut calls, &step.call.call(&parts, step.now), step.now);
    }
    for ((index, step), value) in steps.iter().enumerate().skip(1).zip(server.responses(&calls)) {
        let parts = [step.call.part(&step.rules)];
        let response = Response::read(&step.call.call(&parts, step.now), &value);
        let response = response.unwrap_or_else(|error| panic!("{error}: {value:?}"));
        assert_same(&response, step, seed, index);
    }
}

fn assert_same(response: &Response, step: &Step, seed: u64, index: usize) {
    let Step { call, rules, now, expected_result, levels, tolerance } = step;
    let view = &response.views[0].buckets[..];
    let close = |a: u64, b: u64| a.abs_diff(b) <= *tolerance;
    let levels_agree = view.iter().zip(levels).all(|(a, b)| close(a.0, b.0) && a.1 == b.1);
    let agree = match (&response.outcome, expected_result) {
        (Outcome::Done, EngineResult::Done) => true,
        (
            Outcome::Refused { part: 0, rule, wait },
            EngineResult::Refused { rules, wait: expected, earliest },
        ) => {
            let same_time = |micros: u64, time: Timestamp| {
                let expected = time.as_nanos().div_ceil(1_000) - now;
                close(micros, expected) || micros.min(expected) > LONG_WAIT
            };
            let same = match (wait, expected) {
                (RetryAfter::In(wait), Wait::At(time)) => same_time(*wait, *time),
                (RetryAfter::Unknown, Wait::Unknown) | (RetryAfter::Never, Wait::Never) => true,
                _ => false,
            };
            let same_earliest = match wait {
                RetryAfter::Never => response.earliest == 0,
                _ => same_time(response.earliest, *earliest),
            };
            same && same_earliest && (*tolerance > 0 || rules.contains(rule))
        }
        _ => false,
    };
    let limits: Vec<_> = rules.iter().map(|rule| (rule.limit(), rule.holds())).collect();
    assert!(
        agree && levels_agree,
        "seed {seed}, step {index} at {now}: {call:?}\n script {:?} {view:?}\n engine {expected_result:?} {levels:?}\n {limits:?}",
        response.outcome
    );
}

const STEPS: u64 = 1_200;

/// Half a second, in microseconds.
const HALF_SECOND: u64 = 500_000;
const MONTH: u64 = 31 * 86_400_000_000;

/// 71 years, in microseconds. The script computes waits of at most about twice that length.
const LONG_WAIT: u64 = 1 << 51;

/// 2027-03-12, two days before a day of 23 hours.
const START: u64 = 1_804_809_600_000_000;
