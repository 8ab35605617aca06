//! The shortest possible duration of a job.

use std::collections::HashMap;
use std::time::Duration;

use paceline::Timestamp;
use paceline::engine::Wait;
use paceline::limiter::{Limiter, ManualClock};
use paceline::provider::Profile;
use paceline::quota::{Cost, Quota};
use paceline_limiter::seam;

/// A simulated sender with zero latency that sends each model's requests in order within the same
/// limits, including burst and margin, in virtual time.
#[derive(Debug)]
pub struct Ideal {
    profile: Profile,
    models: HashMap<String, (Limiter, ManualClock)>,
}

impl Ideal {
    /// Returns a sender to a provider with this profile.
    pub fn new(profile: Profile) -> Self {
        Self { profile, models: HashMap::new() }
    }

    /// Sends a request as soon as `reserved` fits, and settles it immediately with `charged`.
    /// Returns its send time from the start; `None` if it never fits.
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
            let limiter = builder
                .quota("*", quota())
                .build()
                .expect("one quota and the default margin are valid");
            seam::count_as_model(&limiter, model, self.profile.name());
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

    /// Returns the time from the first to the last send, over all models.
    pub fn duration(&self) -> Duration {
        let ends = self.models.values().map(|(limiter, _)| limiter.now());
        let longest = ends.max().unwrap_or(ManualClock::START);
        since_start(longest)
    }
}

fn since_start(time: Timestamp) -> Duration {
    time - ManualClock::START
}
