//! Concurrent threads: no operation is lost or counted twice.

use paceline::limiter::{Limiter, ManualClock};
use paceline::quota::{Algorithm, Cost, Quota, Usage};

use super::rig::{builder, held, tokens, used};
use paceline_testing::full::full_or;

const THREADS: usize = 20;

/// Returns the number of operations of each thread.
fn operations_per_thread() -> usize {
    full_or(50_000, 5_000)
}

/// Returns the number of groups of five operations, over all threads.
fn groups_of_five() -> u64 {
    (THREADS * operations_per_thread() / 5) as u64
}

/// Runs `operation` in twenty threads, [`operations_per_thread`] times in each, with consecutive numbers.
fn run(operation: impl Fn(usize) + Sync) {
    let (operation, each) = (&operation, operations_per_thread());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || (0..each).for_each(|i| operation(thread * each + i)));
        }
    });
}

fn limiter(quota: Quota) -> Limiter {
    builder().quota("*", quota).clock(ManualClock::new()).build().unwrap()
}

/// Runs one of five operations in turn; five together take 4 requests and 12 tokens.
fn mixed(limiter: &Limiter, key: &str, number: usize) {
    let acquire = || limiter.try_acquire(key, &tokens(3)).unwrap();
    match number % 5 {
        0 => acquire().settle(&tokens(2)),
        1 => acquire().settle(&tokens(5)),
        2 => acquire().release(),
        3 => drop(acquire()),
        _ => limiter.record(key, &Usage { input: 1, output: 1, ..Usage::default() }),
    }
}

const PLENTY: u64 = 1_000_000_000;

#[test]
fn g20_mixed_operations_on_one_key_add_up() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        let quota = Quota::new().rpm(PLENTY).tpm(PLENTY).concurrency(THREADS as u64);
        let limiter = limiter(quota.with_algorithm(algorithm));
        run(|number| mixed(&limiter, "k", number));
        assert_eq!(
            used(&limiter, "k")[..2],
            [4 * groups_of_five(), 12 * groups_of_five()],
            "{algorithm:?}"
        );
        assert_eq!(held(&limiter, "k"), [0, 0, 0], "{algorithm:?}");
    }
}

#[test]
fn g20_mixed_operations_on_several_keys_add_up() {
    let limiter = limiter(Quota::new().rpm(PLENTY).tpm(PLENTY).rpd(PLENTY));
    let keys: Vec<_> = (0..8).map(|i| format!("key-{i}")).collect();
    run(|number| mixed(&limiter, &keys[number / 5 % 8], number));
    let part = groups_of_five() / 8;
    for key in &keys {
        assert_eq!(used(&limiter, key), [4 * part, 12 * part, 4 * part]);
        assert_eq!(held(&limiter, key), [0, 0, 0]);
    }
}

#[test]
fn g20_million_attempts_are_granted_exactly_the_limit() {
    let limit = full_or(123_457, 12_347);
    let limiter = limiter(Quota::new().rpm(limit).tpm(PLENTY));
    run(|number| {
        if let Ok(permit) = limiter.try_acquire("k", &tokens(3)) {
            match number % 3 {
                0 => permit.release(),
                1 => permit.settle(&tokens(3)),
                _ => drop(permit),
            }
        }
    });
    assert_eq!(used(&limiter, "k"), [limit, 3 * limit]);
    assert_eq!(held(&limiter, "k"), [0, 0]);
}

#[test]
fn g20_requests_of_several_keys_count_in_each_key() {
    let limiter = limiter(Quota::new().rpm(PLENTY).tpm(PLENTY));
    let scopes = [["tenant", "model"], ["model", "tenant"], ["model", "account"]];
    run(|number| {
        let acquire = limiter.acquire_all(&scopes[number % 3], &Cost::new().tokens(2));
        acquire.try_now().unwrap().settle(&Cost::new().tokens(1));
    });
    let all = 5 * groups_of_five();
    let without = all / 3;
    assert_eq!(used(&limiter, "model"), [all, all]);
    assert_eq!(used(&limiter, "tenant"), [all - without, all - without]);
    assert_eq!(used(&limiter, "account"), [without, without]);
}
