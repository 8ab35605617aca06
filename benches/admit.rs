//! Admission with RPM, TPM and RPD limits, compared with other crates: `cargo bench --bench admit`.
//!
//! Rows 1 to 4 of the speed table: a hot key by name, a hot key by handle, a refusal with its wait, and
//! a million keys. All subjects check the same three limits, and refuse only in row 3.
//!
//! - `paceline` charges requests when they are sent, as OpenAI does.
//! - `paceline_held` holds the tokens until the request is settled, which takes the lock and reads the
//!   clock a second time. Compare it with `mutex_hashmap_settled`.
//! - `paceline_observed` has a key whose responses stated the remaining quota.
//! - `_kept` is a limiter whose changes are tracked for a store.

#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

mod peers;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use paceline::limiter::{KeyHandle, Limiter};
use paceline::quota::{Algorithm, Cost, Quota};
use paceline_limiter::seam;
use peers::{Governor, GovernorDirect, Map};

criterion_group!(benches, by_name, two_threads, by_handle, refusal, million_keys);
criterion_main!(benches);

const KEY: &str = "gpt-4o-mini-2024-07-18";
const TOKENS: u64 = 50;

/// Returns a quota that a benchmark never exhausts: a token refills every nanosecond.
fn ample_quota() -> Quota {
    Quota::new().rpm(6_000_000_000).tpm(60_000_000_000).rpd(8_640_000_000_000)
}

fn limiter(quota: Quota) -> Limiter {
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    Limiter::builder().quota("*", quota).build().expect("a valid quota")
}

fn take_and_settle(limiter: &Limiter, key: &str, cost: &Cost) {
    limiter.try_acquire(black_box(key), cost).expect("an ample quota").settle(cost);
}

/// Returns a limiter that charges requests when they are sent, as OpenAI does. Settling does no work.
fn charging_at_send(quota: Quota) -> Limiter {
    let builder = Limiter::builder().provider(paceline::provider::OPENAI);
    builder.quota("*", quota).build().expect("a valid quota")
}

/// Returns a limiter like `charging_at_send` that has received the remaining quota from the provider.
fn observed() -> Limiter {
    let limiter = charging_at_send(ample_quota());
    let mut headers = http::HeaderMap::new();
    let left = http::HeaderValue::from_static("5000000000");
    headers.insert("x-ratelimit-remaining-requests", left);
    let permit = limiter.try_acquire(KEY, &Cost::new()).expect("an ample quota");
    permit.observe(&paceline::provider::OPENAI.limits(&headers));
    drop(permit);
    limiter
}

/// Returns a limiter whose changes are tracked for a store.
fn tracked(limiter: Limiter) -> Limiter {
    seam::track(&limiter);
    limiter
}

fn by_name(c: &mut Criterion) {
    let cost = Cost::new().tokens(TOKENS);
    let mut group = c.benchmark_group("1_hot_key_by_name");
    let ours = charging_at_send(ample_quota());
    group.bench_function("paceline", |b| b.iter(|| take_and_settle(&ours, KEY, &cost)));
    let seen = observed();
    group.bench_function("paceline_observed", |b| b.iter(|| take_and_settle(&seen, KEY, &cost)));
    let stored = tracked(charging_at_send(ample_quota()));
    group.bench_function("paceline_kept", |b| b.iter(|| take_and_settle(&stored, KEY, &cost)));
    let map = Map::new(3e9);
    group.bench_function("mutex_hashmap", |b| b.iter(|| map.take(black_box(KEY), 50.0)));
    let governor = Governor::new(u32::MAX);
    group.bench_function("governor_keyed_x3", |b| b.iter(|| governor.take(black_box(KEY), 50)));
    let held = limiter(ample_quota());
    group.bench_function("paceline_held", |b| b.iter(|| take_and_settle(&held, KEY, &cost)));
    let stored = tracked(limiter(ample_quota()));
    group.bench_function("paceline_held_kept", |b| {
        b.iter(|| take_and_settle(&stored, KEY, &cost));
    });
    group.bench_function("mutex_hashmap_settled", |b| {
        b.iter(|| {
            let taken = map.take(black_box(KEY), 50.0);
            map.settle(black_box(KEY), 0.0);
            taken
        });
    });
    group.bench_function("clock_read", |b| b.iter(now));
    group.finish();
}

fn two_threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("1_same_key_two_threads");
    let cost = Cost::new().tokens(TOKENS);
    let ours = charging_at_send(ample_quota());
    group.bench_function("paceline", |b| {
        b.iter_custom(|n| on_two_threads(n, &|| take_and_settle(&ours, KEY, &cost)));
    });
    let map = Map::new(3e9);
    group.bench_function("mutex_hashmap", |b| {
        b.iter_custom(|n| {
            on_two_threads(n, &|| {
                black_box(map.take(black_box(KEY), 50.0)).ok();
            })
        });
    });
    let governor = Governor::new(u32::MAX);
    group.bench_function("governor_keyed_x3", |b| {
        b.iter_custom(|n| on_two_threads(n, &|| governor.take(black_box(KEY), 50)));
    });
    let held = limiter(ample_quota());
    group.bench_function("paceline_held", |b| {
        b.iter_custom(|n| on_two_threads(n, &|| take_and_settle(&held, KEY, &cost)));
    });
    group.finish();
}

fn by_handle(c: &mut Criterion) {
    let cost = Cost::new().tokens(TOKENS);
    let mut group = c.benchmark_group("2_handle");
    let handle: KeyHandle = charging_at_send(ample_quota()).key(KEY).expect("a glob matches");
    group.bench_function("paceline", |b| {
        b.iter(|| handle.try_acquire(&cost).expect("an ample quota").settle(&cost));
    });
    let governor = GovernorDirect::new(u32::MAX);
    group.bench_function("governor_direct_x3", |b| b.iter(|| governor.take(50)));
    let held: KeyHandle = limiter(ample_quota()).key(KEY).expect("a glob matches");
    group.bench_function("paceline_held", |b| {
        b.iter(|| held.try_acquire(&cost).expect("an ample quota").settle(&cost));
    });
    group.finish();
}

fn refusal(c: &mut Criterion) {
    let cost = Cost::new().tokens(TOKENS);
    let mut group = c.benchmark_group("3_refusal_with_retry_after");
    let ours = charging_at_send(Quota::new().rpm(500).tpm(TOKENS).rpd(10_000));
    drop(ours.try_acquire(KEY, &cost));
    group.bench_function("paceline", |b| {
        b.iter(|| ours.try_acquire(black_box(KEY), &cost).expect_err("used up").retry_after());
    });
    let governor = Governor::new(1);
    governor.take(KEY, 1);
    group.bench_function("governor", |b| b.iter(|| governor.refuse(black_box(KEY))));
    let map = Map::new(1.0);
    map.take(KEY, 1.0).expect("full at first");
    group.bench_function("mutex_hashmap", |b| b.iter(|| map.take(black_box(KEY), 1.0)));
    group.finish();
}

/// Measures a million keys of 21 to 26 characters in random order, and the resident memory.
fn million_keys(c: &mut Criterion) {
    let keys: Vec<String> = (0..1_000_000_u64).map(key).collect();
    let order: Vec<&str> =
        (0..1_000_000_u64).map(|i| &*keys[(mix(i) % 1_000_000) as usize]).collect();
    let cost = Cost::new().tokens(TOKENS);
    let mut group = c.benchmark_group("4_million_keys");
    group.sample_size(10);
    {
        let ours = charging_at_send(ample_quota());
        let filled = fill("paceline", &keys, |key| take_and_settle(&ours, key, &cost));
        let mut next = order.iter().cycle();
        group.bench_function("paceline", |b| {
            b.iter(|| take_and_settle(&ours, next.next().expect("cycles"), &cost));
        });
        black_box(filled);
    }
    {
        let governor = Governor::new(u32::MAX);
        fill("governor_keyed_x3", &keys, |key| governor.take(key, 50));
        let mut next = order.iter().cycle();
        group.bench_function("governor_keyed_x3", |b| {
            b.iter(|| governor.take(next.next().expect("cycles"), 50));
        });
    }
    {
        let map = Map::new(3e9);
        fill("mutex_hashmap", &keys, |key| {
            map.take(key, 50.0).expect("an ample quota");
        });
        let mut next = order.iter().cycle();
        group.bench_function("mutex_hashmap", |b| {
            b.iter(|| map.take(next.next().expect("cycles"), 50.0));
        });
    }
    group.finish();
}

/// Inserts each key once, and prints the memory per key and the slowest single call.
fn fill(name: &str, keys: &[String], mut take: impl FnMut(&str)) -> Duration {
    let before = resident();
    let mut slowest = Duration::ZERO;
    for key in keys {
        let start = now();
        take(key);
        slowest = slowest.max(start.elapsed());
    }
    let bytes = resident().saturating_sub(before) / keys.len();
    println!("4_million_keys/{name}: {bytes} bytes per key, slowest insertion {slowest:?}");
    slowest
}

/// Runs half of the calls on each of two threads. Returns the total time.
fn on_two_threads(times: u64, work: &(dyn Fn() + Sync)) -> Duration {
    let start = now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..times / 2).for_each(|_| work()));
        }
    });
    start.elapsed()
}

fn key(number: u64) -> String {
    let padding = "x".repeat((mix(number) % 6) as usize);
    format!("tenant:{number:08}:{padding}abcd")
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 29)
}

/// Returns the resident memory of the process in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4_096
}

fn now() -> Instant {
    Instant::now()
}
