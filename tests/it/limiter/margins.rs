//! The margin of a quota, and that of the limiter for quotas without one.

use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{Limiter, ManualClock};
use paceline::quota::{Algorithm, Cost, Margin, Quota};

/// Returns how long a second request waits after a first one that uses the whole limit.
fn wait(limiter: &Limiter, key: &str) -> Duration {
    drop(limiter.try_acquire(key, &Cost::new()).unwrap());
    match limiter.try_acquire(key, &Cost::new()).unwrap_err().wait {
        Wait::At(at) => at - limiter.now(),
        wait => panic!("{wait:?}"),
    }
}

fn per_minute() -> Quota {
    Quota::new().rpm(1).with_algorithm(Algorithm::SlidingWindow)
}

#[test]
fn client_and_server_keys_in_one_limiter_have_own_margins() {
    let lag = Margin::new(0, Duration::from_secs(3)).unwrap();
    let limiter = Limiter::builder()
        .clock(ManualClock::new())
        .quota("client", per_minute())
        .quota("slow client", per_minute().with_margin(lag))
        .quota("server", per_minute().with_margin(Margin::NONE))
        .build()
        .unwrap();
    assert_eq!(wait(&limiter, "client"), Duration::from_millis(60_500));
    assert_eq!(wait(&limiter, "slow client"), Duration::from_secs(63));
    assert_eq!(wait(&limiter, "server"), Duration::from_secs(60));
}

#[test]
fn margin_set_while_running_applies_to_used_keys() {
    let clock = ManualClock::new();
    let limiter = Limiter::builder().clock(clock.clone()).quota("k", per_minute()).build().unwrap();
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    clock.advance(Duration::from_secs(60));
    assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    limiter.quotas().set("k", &per_minute().with_margin(Margin::NONE)).unwrap();
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
}
