//! Stores with usage of two keys.

use std::path::Path;
use std::time::Duration;

use paceline::limiter::Limiter;
use paceline::quota::{Algorithm, Cost, Quota};
use paceline::store::{Persistence, Sqlite, Yaml};

/// Returns a limiter for `gpt-4o` and `claude-*` that writes its state to `path` every 20 ms.
pub(crate) fn open(path: &Path) -> Limiter {
    kept(path, Duration::from_millis(20))
}

/// Runs `run` with such a limiter, and writes its state when it is dropped.
pub(crate) fn closed(path: &Path, run: impl FnOnce(&Limiter)) {
    run(&kept(path, Duration::from_secs(3_600)));
}

fn kept(path: &Path, flush: Duration) -> Limiter {
    let quota = Quota::new().rpm(500).tpm(30_000).rpd(10_000);
    let limiter = Limiter::builder()
        // A sliding window releases no quota during a test.
        .quota("gpt-4o", quota.with_algorithm(Algorithm::SlidingWindow))
        .quota("claude-*", Quota::new().rpd(50).with_algorithm(Algorithm::SlidingWindow))
        .build()
        .expect("a limiter");
    let kept = match path.extension().is_some_and(|end| end == "yaml") {
        true => Persistence::start(&limiter, Yaml::new(path), flush),
        false => Persistence::start(&limiter, Sqlite::new(path), flush),
    };
    kept.expect("the store opens");
    limiter
}

/// Consumes one request with this number of tokens.
pub(crate) fn take(limiter: &Limiter, key: &str, tokens: u64) {
    let cost = Cost::new().tokens(tokens);
    limiter.try_acquire(key, &cost).expect("the request fits").settle(&cost);
}

/// Writes a store with the usage of two keys.
pub(crate) fn two_keys(path: &Path) {
    closed(path, |limiter| {
        take(limiter, "gpt-4o", 12_345);
        take(limiter, "claude-x", 0);
        take(limiter, "claude-x", 0);
    });
}
