//! The limiter, through its public calls.

mod attached;
mod backend;
mod busiest;
mod changes;
mod cool_down;
mod corners;
#[cfg(feature = "regex")]
mod default_limits;
mod gate;
#[cfg(feature = "requests")]
mod guesses;
mod keys;
mod ledger;
mod margins;
mod missing_feature;
mod observe;
mod others;
mod outputs;
mod oversize;
mod permit;
mod properties;
mod queue;
mod quotas;
mod reduction;
mod runtime;
mod scopes;
#[cfg(feature = "regex")]
mod settings;
mod state;
mod totals;
#[cfg(feature = "requests")]
mod uncounted;
use std::time::Duration;
use tollgate::limiter::{Builder, Limiter, ManualClock, Reduction, TokioClock};
use tollgate::quota::{Algorithm, Cost, Margin, Quota};

/// Seconds, in nanoseconds.
const S: Duration = Duration::from_secs(1);

fn builder() -> Builder {
    Limiter::builder().margin(Margin::NONE).reduction(Reduction::OFF)
}

/// One key `k` with this quota as a token bucket, no margin, and a clock moved by hand.
fn manual(quota: Quota) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("k", quota).clock(clock.clone()).build().unwrap();
    (limiter, clock)
}

/// The same on tokio's paused clock.
fn paused(quota: Quota) -> Limiter {
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    builder().quota("k", quota).clock(TokioClock::new()).build().unwrap()
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

/// Lets every task that is ready run.
async fn settle_down() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}
