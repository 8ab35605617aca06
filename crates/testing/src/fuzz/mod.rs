//! A fuzzer that runs a target on mutated seeds.

mod mutate;
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::full::full_or;

pub use random::Random;

use mutate::mutated;

/// Runs a target on its seeds and on mutations of them.
///
/// `PACELINE_FUZZ_SEED` sets the seed of the random numbers.
///
/// # Panics
/// If the target panics; the input is printed to standard error.
pub fn fuzz(name: &str, seeds: &[Vec<u8>], target: impl Fn(&[u8])) {
    let seed = std::env::var("PACELINE_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let (mut random, mutations) = (Random(seed.unwrap_or(0)), full_or(100_000, 2_000));
    seeds.iter().for_each(|seed| run(name, seed, &target));
    (0..mutations).for_each(|_| run(name, &mutated(seeds, &mut random), &target));
    println!("{name}: {} inputs without a panic", seeds.len() + mutations);
}

fn run(name: &str, input: &[u8], target: impl Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        eprintln!("{name}: panicked on b\"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}
