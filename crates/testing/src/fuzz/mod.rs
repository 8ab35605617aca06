//! Runs a target over mutated seeds.

mod mutate;
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::full::full_or;

pub use random::Random;

use mutate::mutated;

/// Feeds a target with its seeds, and with what mutation makes of them.
pub fn fuzz(name: &str, seeds: &[Vec<u8>], target: impl Fn(&[u8])) {
    let seed = std::env::var("TOLLGATE_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let (mut random, mutations) = (Random(seed.unwrap_or(0)), full_or(100_000, 2_000));
    seeds.iter().for_each(|seed| run(name, seed, &target));
    (0..mutations).for_each(|_| run(name, &mutated(seeds, &mut random), &target));
    println!("{name}: {} inputs without a finding", seeds.len() + mutations);
}

fn run(name: &str, input: &[u8], target: impl Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        eprintln!("{name}: found by b\"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}
