use alloc::borrow::ToOwned;
use core::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};

use super::Period;
use super::grid::Grid;
use crate::timestamp::Timestamp;

/// A time zone, from which the boundaries of calendars are computed. Only this file of the module uses a
/// time zone database.
#[derive(Debug, Clone)]
pub(super) struct Zone(TimeZone);

impl Zone {
    pub(super) const UTC: Self = Self(TimeZone::UTC);

    /// Returns the zone of this name in the IANA time zone database of the system, else of the program. UTC
    /// needs no database. Without the feature `zones`, it is the only zone.
    pub(super) fn find(name: &str) -> Result<Self, UnknownZone> {
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Self::UTC);
        }
        // Another crate may enable the database of jiff, which must not change the result.
        let found = if cfg!(feature = "zones") { TimeZone::get(name).ok() } else { None };
        found.map(Self).ok_or_else(|| UnknownZone { zone: name.to_owned() })
    }

    /// Returns the name as the database spells it.
    pub(super) fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Returns all periods from the first one that starts in 1970 to the end of 2100, and windows of the
    /// nominal length after that.
    ///
    /// If clocks skip midnight, the day starts at that change. A day that a zone skipped (Apia, 2011-12-30)
    /// has no window.
    pub(super) fn grid(&self, period: Period) -> Grid {
        let (mut date, step) = dates(period);
        let mut grid = Grid::default();
        while date < END {
            let next = date.saturating_add(step);
            let mut count = 1;
            if let (Some(start), Some(end)) = (self.midnight(date), self.midnight(next)) {
                let length = end.nanos_since(start);
                grid.push(start, length);
                // Only for days and weeks, since the lengths of months vary.
                if period != Period::Month && length == period.window().as_nanos() {
                    count = self.windows_until_change(start, length).max(1);
                }
            }
            date = date.saturating_add(step * count);
        }
        grid.push(self.midnight(date).unwrap_or(Timestamp::MAX), period.window().as_nanos());
        grid
    }

    /// Returns the number of windows of this length that end before the next clock change. Looking up each
    /// boundary would take 10 times as long.
    fn windows_until_change(&self, start: Timestamp, length: u64) -> i64 {
        let from = jiff::Timestamp::from_nanosecond(start.as_nanos().into()).ok();
        let change = from.and_then(|from| self.0.following(from).next());
        let until = change.and_then(|change| timestamp(change.timestamp()));
        let until = until.or(self.midnight(END)).unwrap_or(start);
        i64::try_from(until.nanos_since(start.add_nanos(1)) / length).unwrap_or(0)
    }

    /// Returns the start of a date, or `None` before the Unix epoch.
    fn midnight(&self, date: Date) -> Option<Timestamp> {
        self.0.to_timestamp(date.at(0, 0, 0, 0)).ok().and_then(timestamp)
    }
}

/// A time zone that the time zone database doesn't contain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownZone {
    /// The name that was given.
    pub zone: String,
}

impl fmt::Display for UnknownZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown time zone {:?}; ", self.zone)?;
        f.write_str(match cfg!(feature = "zones") {
            true => "give an IANA name such as Europe/Berlin",
            false => "without the feature `zones`, only UTC is available",
        })
    }
}

impl core::error::Error for UnknownZone {}

/// Returns the first date on which a period can start, and the step to the next.
fn dates(period: Period) -> (Date, Span) {
    match period {
        Period::Day => (Date::constant(1970, 1, 1), 1.day()),
        // A Monday.
        Period::Week => (Date::constant(1969, 12, 29), 7.days()),
        Period::Month => (Date::constant(1970, 1, 1), 1.month()),
    }
}

fn timestamp(time: jiff::Timestamp) -> Option<Timestamp> {
    u64::try_from(time.as_nanosecond()).ok().map(Timestamp::from_nanos)
}

const END: Date = Date::constant(2101, 1, 1);
