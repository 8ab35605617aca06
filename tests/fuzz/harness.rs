//! Runs a target over mutated seeds.

#![expect(clippy::disallowed_methods, reason = "a long run ends by the clock")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::mutate::mutated;
use crate::random::Random;

/// Feeds a target with its seeds, and with what mutation makes of them.
pub(crate) fn fuzz(name: &str, seeds: &[Vec<u8>], target: impl Fn(&[u8])) {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let mut random = Random(number("TOLLGATE_FUZZ_SEED").unwrap_or(0));
    let end = number("TOLLGATE_FUZZ_SECONDS").map(|s| Instant::now() + Duration::from_secs(s));
    seeds.iter().for_each(|seed| run(name, seed, &target));
    let mut inputs = seeds.len();
    while end.map_or(inputs < SHORT, |end| Instant::now() < end) {
        run(name, &mutated(seeds, &mut random), &target);
        inputs += 1;
    }
    println!("{name}: {inputs} inputs without a finding");
}

fn run(name: &str, input: &[u8], target: impl Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        eprintln!("{name}: found by b\"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}

/// Inputs of a run that is part of all tests.
const SHORT: usize = 10_000;
