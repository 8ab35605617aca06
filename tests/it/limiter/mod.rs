//! The limiter through its public API.

mod asking;
mod attached;
mod backend;
mod busiest;
mod changed_limits;
mod changes;
mod claims;
mod collected_changes;
mod cool_down;
mod deadlines;
#[cfg(feature = "regex")]
mod default_limits;
mod expected_output;
mod gate;
mod guessed_costs;
mod keys;
mod long_waits;
mod margins;
#[cfg(not(feature = "zones"))]
mod missing_feature;
mod missing_limits;
mod never_reset;
mod observed_headers;
mod oversize;
mod permit;
mod properties;
mod provider_rules;
mod queue;
mod quota_waits;
mod quotas;
mod raising_headers;
mod random;
mod reduction;
mod regressions;
mod remote_changes;
mod runtime;
#[cfg(feature = "regex")]
mod runtime_settings;
mod scopes;
mod shared_quotas;
mod state;
mod totals;
mod turns;
mod waiting;
mod window_changes;
use paceline::limiter::{Builder, Limiter, ManualClock, Reduction, TokioClock};
use paceline::quota::{Algorithm, Cost, Margin, Quota};
use std::time::Duration;

/// One second.
const S: Duration = Duration::from_secs(1);

fn builder() -> Builder {
    Limiter::builder().margin(Margin::NONE).reduction(Reduction::OFF)
}

/// Returns a limiter with one key `k`, this quota as a token bucket and no margin, and its manual
/// clock.
fn manual(quota: Quota) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("k", quota).clock(clock.clone()).build().unwrap();
    (limiter, clock)
}

/// Like [`manual`], on tokio's paused clock.
fn paused(quota: Quota) -> Limiter {
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    builder().quota("k", quota).clock(TokioClock::new()).build().unwrap()
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

/// Runs every task that is ready.
async fn settle_down() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}
