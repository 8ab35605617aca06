//! The context shared by all lines of a run.

use parking_lot::Mutex;

use super::client::Client;
use super::outcome::Outcome;
use super::output::Output;
use super::response_policy::ResponsePolicy;
use super::run_stats::RunStats;
use super::secrets::Secrets;
use super::stop::{Halt, Stop};
use super::target::Base;
use paceline::limiter::Limiter;
use paceline::middleware::{Http, RetryService};
use paceline::provider::Profile;

/// The client with rate limits and retries.
pub(super) type Limited = RetryService<Client, Http, ResponsePolicy>;

/// The client, the output and the statistics of a run.
#[derive(Debug)]
pub(super) struct JobContext {
    pub(super) service: Limited,
    /// The number of retries of each line.
    pub(super) retries: u32,
    pub(super) limiter: Limiter,
    pub(super) base: Base,
    pub(super) profile: Profile,
    pub(super) secrets: Secrets,
    pub(super) stats: Mutex<RunStats>,
    pub(super) stop: Stop,
    pub(super) output: Mutex<Output>,
}

impl JobContext {
    /// Writes an outcome. If that fails, the run stops, since further results would be lost.
    pub(super) fn write(&self, outcome: &Outcome, body: &[u8]) {
        let written = self.output.lock().write(outcome);
        match written {
            Ok(()) => self.stats.lock().done(outcome, body),
            Err(error) => self.stop.halt(Halt::Failed(error.to_string())),
        }
    }
}
