//! What all lines of a run share.

use parking_lot::Mutex;

use super::attempt::Limited;
use super::gate::Gate;
use super::outcome::Outcome;
use super::output::Output;
use super::secrets::Secrets;
use super::stop::{Halt, Stop};
use super::tally::Tally;
use super::target::Base;
use tollgate::provider::Profile;

/// The way to the provider, the way to the output, and what was counted between them.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) service: Limited,
    /// The same, which sends nothing again.
    pub(super) once: Limited,
    pub(super) gate: Gate,
    pub(super) base: Base,
    pub(super) profile: Profile,
    pub(super) secrets: Secrets,
    pub(super) tally: Mutex<Tally>,
    pub(super) stop: Stop,
    pub(super) output: Mutex<Output>,
}

impl Shared {
    /// Writes what became of a line with this body. If that fails, the run stops: work without a result
    /// is waste.
    pub(super) fn write(&self, outcome: &Outcome, body: &[u8]) {
        let written = self.output.lock().write(outcome);
        match written {
            Ok(()) => self.tally.lock().done(outcome, body),
            Err(error) => self.stop.halt(Halt::Failed(error.to_string())),
        }
    }
}
