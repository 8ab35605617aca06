//! Gemini's daily window, which starts at midnight in Los Angeles.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::meter::Meter;

/// A window that ends at midnight Pacific time, whatever the length of the day.
#[derive(Debug)]
pub(super) struct PacificDay {
    amount: u64,
    used: u64,
    /// The end of the current window.
    ends_at: u64,
    zone: TimeZone,
}

impl PacificDay {
    pub(super) fn new(amount: u64) -> Self {
        // Time zones are compiled in if the system has none.
        let zone = TimeZone::get("America/Los_Angeles").unwrap_or(TimeZone::UTC);
        Self { amount, used: 0, ends_at: 0, zone }
    }

    fn roll_over(&mut self, now: u64) {
        if now >= self.ends_at {
            self.used = 0;
            self.ends_at = self.midnight_after(now).unwrap_or(u64::MAX);
        }
    }

    fn midnight_after(&self, now: u64) -> Option<u64> {
        let today = Timestamp::from_nanosecond(now.into()).ok()?.to_zoned(self.zone.clone());
        let midnight = today.start_of_day().ok()?.checked_add(1.day()).ok()?;
        u64::try_from(midnight.timestamp().as_nanosecond()).ok()
    }
}

impl Meter for PacificDay {
    fn wait(&mut self, now: u64, n: u64) -> Option<u64> {
        let headroom = self.amount.checked_sub(n)?;
        self.roll_over(now);
        Some(if self.used <= headroom { 0 } else { self.ends_at - now })
    }

    fn take(&mut self, now: u64, n: u64) {
        self.roll_over(now);
        self.used = self.used.saturating_add(n);
    }

    fn remaining(&mut self, now: u64) -> u64 {
        self.roll_over(now);
        self.amount.saturating_sub(self.used)
    }

    fn time_until_full(&mut self, now: u64) -> u64 {
        self.roll_over(now);
        if self.used == 0 { 0 } else { self.ends_at - now }
    }

    fn set_amount(&mut self, _now: u64, amount: u64, _capacity: u64) {
        self.amount = amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    #[test]
    fn day_ends_at_local_midnight_across_dst_change() {
        // 2027-03-14 12:00 PDT. Clocks went forward that night, to UTC-7.
        let noon = 1_805_050_800_000_000_000;
        let mut day = PacificDay::new(2);
        day.take(noon - 11 * HOUR, 2);
        assert_eq!(day.wait(noon - 11 * HOUR, 1), Some(23 * HOUR));
        assert_eq!((day.wait(noon, 1), day.wait(noon, 3)), (Some(12 * HOUR), None));
        assert_eq!((day.remaining(noon), day.time_until_full(noon)), (0, 12 * HOUR));
        assert_eq!(day.wait(noon + 12 * HOUR - 1, 1), Some(1));
        assert_eq!(day.wait(noon + 12 * HOUR, 1), Some(0));
    }
}
