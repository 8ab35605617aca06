//! Stores that a program has written.

use std::path::Path;
use std::time::Duration;

use tollgate::limiter::Limiter;
use tollgate::quota::{Algorithm, Cost, Quota};
use tollgate::store::{Persistence, Sqlite, Yaml};

/// A limiter of `gpt-4o` and `claude-*` that runs: what it does is at `path` soon.
pub(crate) fn open(path: &Path) -> Limiter {
    kept(path, Duration::from_millis(20))
}

/// The same that has written everything down as soon as it is dropped.
pub(crate) fn closed(path: &Path, run: impl FnOnce(&Limiter)) {
    run(&kept(path, Duration::from_secs(3_600)));
}

fn kept(path: &Path, flush: Duration) -> Limiter {
    let quota = Quota::new().rpm(500).tpm(30_000).rpd(10_000);
    let limiter = Limiter::builder()
        // Nothing of them is free again while a test runs.
        .quota("gpt-4o", quota.with_algorithm(Algorithm::SlidingWindow))
        .quota("claude-*", Quota::new().rpd(50).with_algorithm(Algorithm::SlidingWindow))
        .build()
        .expect("a limiter");
    let kept = match path.extension().is_some_and(|end| end == "yaml") {
        true => Persistence::start(&limiter, Yaml::new(path), flush),
        false => Persistence::start(&limiter, Sqlite::new(path), flush),
    };
    kept.expect("it can be kept");
    limiter
}

/// One request of so many tokens.
pub(crate) fn take(limiter: &Limiter, key: &str, tokens: u64) {
    let cost = Cost::new().tokens(tokens);
    limiter.try_acquire(key, &cost).expect("it fits").settle(&cost);
}

/// A store of which two keys were used.
pub(crate) fn two_keys(path: &Path) {
    closed(path, |limiter| {
        take(limiter, "gpt-4o", 12_345);
        take(limiter, "claude-x", 0);
        take(limiter, "claude-x", 0);
    });
}
