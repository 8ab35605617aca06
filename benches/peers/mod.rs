//! The limiters that paceline is compared with, each with the same three limits.

mod map;

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};

pub(crate) use map::Map;

fn quota(per_minute: u32) -> Quota {
    Quota::per_minute(NonZeroU32::new(per_minute).expect("above zero"))
}

/// governor with one keyed limiter per dimension, checked in sequence and therefore not atomically.
pub(crate) struct Governor([DefaultKeyedRateLimiter<String>; 3]);

impl Governor {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self(std::array::from_fn(|_| RateLimiter::keyed(quota(per_minute))))
    }

    pub(crate) fn take(&self, key: &str, tokens: u32) {
        // governor's keyed limiter takes `&K`, so a `&str` must be converted to a `String`.
        let key = key.to_owned();
        let tokens = NonZeroU32::new(tokens).expect("above zero");
        let _ = self.0[0].check_key(&key);
        let _ = self.0[1].check_key_n(&key, tokens);
        let _ = self.0[2].check_key(&key);
    }

    /// Returns the wait of a refusal. Uses the limiter's clock, since creating one takes 14 us.
    pub(crate) fn refuse(&self, key: &str) -> Option<Duration> {
        use governor::clock::Clock;
        let refused = self.0[0].check_key(&key.to_owned()).err()?;
        Some(refused.wait_time_from(self.0[0].clock().now()))
    }
}

/// governor with one unkeyed limiter per dimension.
pub(crate) struct GovernorDirect([DefaultDirectRateLimiter; 3]);

impl GovernorDirect {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self(std::array::from_fn(|_| RateLimiter::direct(quota(per_minute))))
    }

    pub(crate) fn take(&self, tokens: u32) {
        let tokens = NonZeroU32::new(tokens).expect("above zero");
        let _ = self.0[0].check();
        let _ = self.0[1].check_n(tokens);
        let _ = self.0[2].check();
    }
}
