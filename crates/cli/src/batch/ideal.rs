//! How long a job takes at best.

use std::collections::HashMap;
use std::time::Duration;

use tollgate::Timestamp;
use tollgate::engine::Wait;
use tollgate::limiter::{Limiter, ManualClock};
use tollgate::provider::Profile;
use tollgate::quota::{Cost, Quota};

/// A sender without latency, first in first out for each model, against the same limits, burst and
/// margin counted, in virtual time.
#[derive(Debug)]
pub struct Ideal {
    profile: Profile,
    models: HashMap<String, (Limiter, ManualClock)>,
}

impl Ideal {
    /// A sender to a provider with this profile.
    pub fn new(profile: Profile) -> Self {
        Self { profile, models: HashMap::new() }
    }

    /// Sends one more request of a model with this quota: as soon as `reserved` fits, and settled at
    /// once with `charged`. Returns when that is, from the start; `None` for one that never fits.
    pub fn send(
        &mut self,
        model: &str,
        quota: impl FnOnce() -> Quota,
        reserved: &Cost,
        charged: &Cost,
    ) -> Option<Duration> {
        if !self.models.contains_key(model) {
            let clock = ManualClock::new();
            let builder = Limiter::builder().provider(self.profile).clock(clock.clone());
            let limiter =
                builder.quota("*", quota()).build().expect("a key and the default margin");
            self.models.insert(model.to_owned(), (limiter, clock));
        }
        let (limiter, clock) = &self.models[model];
        loop {
            match limiter.try_acquire(model, reserved) {
                Ok(permit) => {
                    permit.settle(charged);
                    return Some(since_start(limiter.now()));
                }
                Err(refused) => match refused.wait {
                    Wait::At(time) => clock.advance_to(time),
                    Wait::Unknown | Wait::Never => return None,
                },
            }
        }
    }

    /// The time from the first to the last send, over all models.
    pub fn duration(&self) -> Duration {
        let ends = self.models.values().map(|(limiter, _)| limiter.now());
        let longest = ends.max().unwrap_or(ManualClock::START);
        since_start(longest)
    }
}

fn since_start(time: Timestamp) -> Duration {
    time - ManualClock::START
}
