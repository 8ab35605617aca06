use super::permit::Permit;
use super::request::Request;
use super::table::KeyRef;
use crate::answer::code::Code;
use crate::answer::error::{AcquireError, Refused};
use crate::event::Event;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// Events and totals of requests.
impl Request {
    /// Reports the grant of a request.
    pub(super) fn report_granted(&self, reserved: &Cost, arrived_at: Timestamp, now: Timestamp) {
        let core = self.core();
        core.totals.count_granted();
        if now > arrived_at {
            core.totals.count_waited();
        }
        let events = &core.events;
        if !events.are_watched() {
            return;
        }
        for KeyRef { key, .. } in &self.keys {
            let (key, metadata) = (|| key.clone(), || self.metadata.clone());
            let cost = reserved.clone();
            events.send(|| Event::Granted { key: key(), cost, metadata: metadata() });
            if now > arrived_at {
                let duration = now - arrived_at;
                events.send(|| Event::Waited { key: key(), duration, metadata: metadata() });
            }
        }
    }

    /// Reports a failure because of the limits.
    #[inline]
    pub(super) fn report_failed(&self, result: &Result<Permit, AcquireError>) {
        let Err(error) = result else { return };
        match (error, error.refused()) {
            (_, Some(refused)) => self.report_denied(refused),
            (AcquireError::QueueFull { key, .. }, None) => self.count_denied(key, None, None),
            _ => {}
        }
    }

    /// Reports a refusal.
    pub(super) fn report_denied(&self, refused: &Refused) {
        self.count_denied(&refused.key, Some(refused.code), refused.dimension.as_ref());
        self.core().events.send(|| Event::Denied {
            key: refused.key.clone(),
            dimension: refused.dimension.clone(),
            metadata: self.metadata.clone(),
        });
    }

    fn count_denied(&self, key: &str, code: Option<Code>, dimension: Option<&Dimension>) {
        self.core().totals.count_denied();
        self.core().denied.offer(key, code, dimension);
    }
}
