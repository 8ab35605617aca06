use super::Adapt;
use crate::answer::utilization::Utilization;
use crate::quota::Share;
use crate::stated::UtilizationReading;
use crate::timestamp::Timestamp;

/// Utilization of the account's windows.
impl Adapt {
    /// Records the used parts of windows, and starts a cool-down until the reset of each window of which the part
    /// `held_to` is used. Returns the end of the cool-down if it is later than before.
    pub(crate) fn see_utilization(
        &mut self,
        readings: &[UtilizationReading],
        held_to: Option<Share>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let windows = readings.iter().map(|reading| Utilization {
            resets_at: reading.reset.map(|reset| now + reset),
            observed_at: now,
            ..Utilization::new(reading.window.clone(), reading.used)
        });
        self.restore_utilization(windows, held_to, now)
    }

    /// Does the same with windows that were stated earlier. The newer statement of a window applies.
    pub(crate) fn restore_utilization(
        &mut self,
        windows: impl Iterator<Item = Utilization>,
        held_to: Option<Share>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let latest = &mut self.utilization.latest;
        for window in windows {
            match latest.iter_mut().find(|known| known.window == window.window) {
                Some(known) if known.observed_at > window.observed_at => {}
                Some(known) => *known = window,
                None => latest.push(window),
            }
        }
        self.hold_utilization(held_to, now)
    }

    /// Applies the part to which the quota holds the windows, after the quota has changed.
    pub(crate) fn hold_utilization(
        &mut self,
        held_to: Option<Share>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let part = held_to.map_or(f64::INFINITY, Share::as_part);
        let full = self.utilization.latest.iter().filter(|window| window.used >= part);
        let until = full.filter_map(|window| window.resets_at).max().filter(|until| *until > now);
        // A cool-down for another reason has replaced the hold if it ends at another time.
        let held = self.utilization.held_until.take();
        if held.is_some_and(|held| held == self.cooling_until && until < Some(held)) {
            self.cooling_until = Timestamp::UNIX_EPOCH;
        }
        self.utilization.held_until = until;
        let until = until.filter(|until| *until > self.cooling_until)?;
        self.cooling_until = until;
        Some(until).filter(|until| held != Some(*until))
    }

    /// Returns whether the provider has stated windows a while ago at most.
    pub(crate) fn has_utilization(&self, now: Timestamp) -> bool {
        !self.utilization.is_idle(now)
    }

    /// Returns the used parts of the windows that haven't started again.
    pub(crate) fn utilization(&self, held_to: Option<Share>, now: Timestamp) -> Vec<Utilization> {
        let held_to = held_to.map(Share::as_part);
        let windows = self.utilization.latest.iter();
        let current = windows.filter(|window| window.is_current(now)).cloned();
        current.map(|window| Utilization { held_to, ..window }).collect()
    }
}
