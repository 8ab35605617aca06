use alloc::borrow::ToOwned;
use core::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};

use super::Period;
use super::grid::Grid;
use crate::timestamp::Timestamp;

/// Where the periods of a calendar start in one time zone. The only file of this room that knows
/// time zones; everybody else gets the boundaries.
#[derive(Debug, Clone)]
pub(super) struct Zone(TimeZone);

impl Zone {
    /// The zone of this name in the IANA time zone database: the system's, or where there is none
    /// the one that came with the program. UTC is known without either, and alone without the feature
    /// `zones`.
    pub(super) fn find(name: &str) -> Result<Self, UnknownZone> {
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Self(TimeZone::UTC));
        }
        // Whether or not another crate of the program has jiff bring its database along.
        let found = if cfg!(feature = "zones") { TimeZone::get(name).ok() } else { None };
        found.map(Self).ok_or_else(|| UnknownZone { zone: name.to_owned() })
    }

    /// The name as the database spells it.
    pub(super) fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// All periods from the first that starts in 1970 to the end of 2100, and beyond that windows of
    /// the nominal length.
    ///
    /// Where clocks are put forward over midnight a day starts when they are. A day that a zone left
    /// out altogether (Apia, 2011-12-30) is none.
    pub(super) fn grid(&self, period: Period) -> Grid {
        let (mut date, step) = dates(period);
        let mut grid = Grid::default();
        while date < END {
            let next = date.saturating_add(step);
            let mut count = 1;
            if let (Some(start), Some(end)) = (self.midnight(date), self.midnight(next)) {
                let length = end.nanos_since(start);
                grid.push(start, length);
                // For days and weeks; no month is sure to be as long as the one before.
                if period != Period::Month && length == period.window().as_nanos() {
                    count = self.calm(start, length).max(1);
                }
            }
            date = date.saturating_add(step * count);
        }
        grid.push(self.midnight(date).unwrap_or(Timestamp::MAX), period.window().as_nanos());
        grid
    }

    /// How many windows of this length are over before clocks change. Asking for each of them would
    /// take 10 times as long.
    fn calm(&self, start: Timestamp, length: u64) -> i64 {
        let from = jiff::Timestamp::from_nanosecond(start.as_nanos().into()).ok();
        let change = from.and_then(|from| self.0.following(from).next());
        let until = change.and_then(|change| timestamp(change.timestamp()));
        let until = until.or(self.midnight(END)).unwrap_or(start);
        i64::try_from(until.nanos_since(start.add_nanos(1)) / length).unwrap_or(0)
    }

    /// Returns the first moment of a date; `None` if that is before the Unix epoch.
    fn midnight(&self, date: Date) -> Option<Timestamp> {
        self.0.to_timestamp(date.at(0, 0, 0, 0)).ok().and_then(timestamp)
    }
}

/// A time zone that the time zone database doesn't know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownZone {
    /// The name that was asked for.
    pub zone: String,
}

impl fmt::Display for UnknownZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time zone {:?} is unknown", self.zone)?;
        match cfg!(feature = "zones") {
            true => Ok(()),
            false => f.write_str(": without the feature `zones`, tollgate knows UTC alone"),
        }
    }
}

impl core::error::Error for UnknownZone {}

/// The first date that a period may start on, and the step to the next.
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
