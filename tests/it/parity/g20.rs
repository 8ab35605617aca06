//! Many threads at once, and no operation lost or counted twice.

use tollgate::limiter::{Limiter, ManualClock};
use tollgate::quota::{Algorithm, Cost, Quota, Usage};

use super::rig::{builder, held, tokens, used};
use tollgate_testing::full::full_or;

const THREADS: usize = 20;

/// Operations of one thread.
fn each() -> usize {
    full_or(50_000, 5_000)
}

/// Five operations each, of all threads.
fn fives() -> u64 {
    (THREADS * each() / 5) as u64
}

/// Runs `operation` in twenty threads, [`each`] times in each; it is given its number.
fn run(operation: impl Fn(usize) + Sync) {
    let (operation, each) = (&operation, each());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || (0..each).for_each(|i| operation(thread * each + i)));
        }
    });
}

fn limiter(quota: Quota) -> Limiter {
    builder().quota("*", quota).clock(ManualClock::new()).build().unwrap()
}

/// One of five operations in turn; each five take 4 requests and 12 tokens.
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
fn g20_a_mix_of_operations_on_one_key_adds_up() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        let quota = Quota::new().rpm(PLENTY).tpm(PLENTY).concurrency(THREADS as u64);
        let limiter = limiter(quota.with_algorithm(algorithm));
        run(|number| mixed(&limiter, "k", number));
        assert_eq!(used(&limiter, "k")[..2], [4 * fives(), 12 * fives()], "{algorithm:?}");
        assert_eq!(held(&limiter, "k"), [0, 0, 0], "{algorithm:?}");
    }
}

#[test]
fn g20_a_mix_of_operations_on_several_keys_adds_up_for_each() {
    let limiter = limiter(Quota::new().rpm(PLENTY).tpm(PLENTY).rpd(PLENTY));
    let keys: Vec<_> = (0..8).map(|i| format!("key-{i}")).collect();
    run(|number| mixed(&limiter, &keys[number / 5 % 8], number));
    let part = fives() / 8;
    for key in &keys {
        assert_eq!(used(&limiter, key), [4 * part, 12 * part, 4 * part]);
        assert_eq!(held(&limiter, key), [0, 0, 0]);
    }
}

#[test]
fn g20_of_a_million_attempts_exactly_the_limit_is_granted() {
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
fn g20_requests_of_several_keys_count_the_same_in_all_of_them() {
    let limiter = limiter(Quota::new().rpm(PLENTY).tpm(PLENTY));
    let scopes = [["tenant", "model"], ["model", "tenant"], ["model", "account"]];
    run(|number| {
        let acquire = limiter.acquire_all(&scopes[number % 3], &Cost::new().tokens(2));
        acquire.try_now().unwrap().settle(&Cost::new().tokens(1));
    });
    let all = 5 * fives();
    let without = all / 3;
    assert_eq!(used(&limiter, "model"), [all, all]);
    assert_eq!(used(&limiter, "tenant"), [all - without, all - without]);
    assert_eq!(used(&limiter, "account"), [without, without]);
}
