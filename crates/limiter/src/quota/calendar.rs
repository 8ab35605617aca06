use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;
use std::sync::OnceLock;

use super::grid::Grid;
use super::zone::{UnknownZone, Zone};
use super::{Period, Window};
use crate::timestamp::Timestamp;

/// The days, weeks or months of a time zone, for limits that reset at midnight there.
///
/// A day on which clocks change has 23 or 25 hours, or another length that the zone defines; months have
/// their actual lengths. Boundaries are exact from 1970 to 2100; from 2101 on every window has the nominal
/// length of [`Period::window`].
///
/// Creating a calendar looks up the zone and computes all boundaries, which takes about 200 µs. Clones are
/// cheap.
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::Timestamp;
/// use paceline_limiter::quota::{Calendar, Dimension, Limit, Period, Quota};
///
/// // Gemini counts its requests per day until midnight, Pacific time.
/// let day = Calendar::new(Period::Day, "America/Los_Angeles")?;
/// let quota = Quota::new().rpm(150).on_calendar(Dimension::Requests, 1_000, &day);
/// assert_eq!(quota.limits()[1].calendar(), Some(&day));
///
/// // On 2027-03-14 clocks go forward, and the day has 23 hours.
/// let noon = Timestamp::from_unix_secs(1_805_050_800);
/// let today = day.around(noon);
/// assert_eq!(today.end - today.start, Duration::from_secs(23 * 3_600));
/// # Ok::<(), paceline_limiter::quota::UnknownZone>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Calendar {
    period: Period,
    zone: Arc<str>,
    grid: Arc<Grid>,
}

impl Calendar {
    /// Creates a calendar of a zone of the IANA time zone database, such as `America/Los_Angeles` or `UTC`.
    /// Uses the database of the system, or else the one bundled with the program.
    ///
    /// # Errors
    /// Returns [`UnknownZone`] if the database has no zone of that name. Without the feature `zones`, only
    /// `UTC` is known.
    pub fn new(period: Period, zone: &str) -> Result<Self, UnknownZone> {
        match zone.eq_ignore_ascii_case("UTC") {
            true => Ok(Self::utc(period)),
            false => Ok(Self::of_zone(period, &Zone::find(zone)?)),
        }
    }

    /// Returns the calendar of UTC.
    pub(crate) fn utc(period: Period) -> Self {
        static DAYS: OnceLock<Calendar> = OnceLock::new();
        static WEEKS: OnceLock<Calendar> = OnceLock::new();
        static MONTHS: OnceLock<Calendar> = OnceLock::new();
        let known = match period {
            Period::Day => &DAYS,
            Period::Week => &WEEKS,
            Period::Month => &MONTHS,
        };
        known.get_or_init(|| Self::of_zone(period, &Zone::UTC)).clone()
    }

    fn of_zone(period: Period, zone: &Zone) -> Self {
        Self { period, zone: zone.name().into(), grid: zone.grid(period).into() }
    }

    /// Returns the unit of the calendar.
    pub fn period(&self) -> Period {
        self.period
    }

    /// Returns the name of the time zone, as the database spells it.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Returns the day, week or month that contains `time`. The time from the Unix epoch to the first
    /// boundary of 1970 is one window.
    pub fn around(&self, time: Timestamp) -> Range<Timestamp> {
        self.grid.around(time)
    }

    /// Returns the nominal length, which is the [`window`](super::Limit::window) of limits on this calendar.
    pub fn window(&self) -> Window {
        self.period.window()
    }

    pub(super) fn grid(&self) -> &Arc<Grid> {
        &self.grid
    }
}

impl fmt::Debug for Calendar {
    /// Formats the period and the zone without the boundaries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Calendar").field(&self.period).field(&self.zone).finish()
    }
}

#[cfg(test)]
#[cfg(feature = "zones")]
mod tests {
    use core::time::Duration;

    use super::*;

    /// Returns the starts in UTC of `count` windows, from the one that contains `time`.
    fn boundaries(period: Period, zone: &str, time: &str, count: usize) -> Vec<String> {
        let calendar = Calendar::new(period, zone).unwrap();
        let mut time = at(time);
        let mut starts = Vec::new();
        for _ in 0..count {
            let window = calendar.around(time);
            assert!(window.contains(&time));
            assert_eq!(calendar.around(window.start), window);
            assert_eq!(calendar.around(window.end - NANOSECOND), window);
            let start = window.start.to_string();
            starts.push(start.strip_suffix(":00Z").unwrap().replace('T', " "));
            time = window.end;
        }
        starts
    }

    const NANOSECOND: Duration = Duration::from_nanos(1);

    fn at(time: &str) -> Timestamp {
        let time = time.parse::<jiff::Timestamp>().unwrap();
        Timestamp::from_nanos(time.as_nanosecond().try_into().unwrap())
    }

    fn hours(zone: &str, noon: &str) -> f64 {
        let day = Calendar::new(Period::Day, zone).unwrap().around(at(noon));
        (day.end - day.start).as_secs_f64() / 3_600.0
    }

    #[test]
    fn day_of_clock_change_has_23_or_25_hours() {
        let days = boundaries(Period::Day, "America/Los_Angeles", "2027-03-13T20:00:00Z", 4);
        let midnights =
            ["2027-03-13 08:00", "2027-03-14 08:00", "2027-03-15 07:00", "2027-03-16 07:00"];
        assert_eq!(days, midnights);
        let days = boundaries(Period::Day, "America/Los_Angeles", "2027-11-06T20:00:00Z", 4);
        let midnights =
            ["2027-11-06 07:00", "2027-11-07 07:00", "2027-11-08 08:00", "2027-11-09 08:00"];
        assert_eq!(days, midnights);
    }

    #[test]
    fn day_without_midnight_starts_at_clock_change() {
        let days = boundaries(Period::Day, "America/Sao_Paulo", "2018-11-03T12:00:00Z", 3);
        assert_eq!(days, ["2018-11-03 03:00", "2018-11-04 03:00", "2018-11-05 02:00"]);
        let days = boundaries(Period::Day, "Asia/Beirut", "2024-03-30T12:00:00Z", 3);
        assert_eq!(days, ["2024-03-29 22:00", "2024-03-30 22:00", "2024-03-31 21:00"]);
    }

    #[test]
    fn day_with_two_midnights_starts_at_first() {
        // At 1:00 clocks go back to 0:00.
        let days = boundaries(Period::Day, "America/Havana", "2024-11-02T12:00:00Z", 3);
        assert_eq!(days, ["2024-11-02 04:00", "2024-11-03 04:00", "2024-11-04 05:00"]);
        // At 24:00 clocks go back to 23:00.
        let days = boundaries(Period::Day, "America/Sao_Paulo", "2018-02-17T12:00:00Z", 2);
        assert_eq!(days, ["2018-02-17 02:00", "2018-02-18 03:00"]);
    }

    #[test]
    fn skipped_day_has_no_window() {
        let days = boundaries(Period::Day, "Pacific/Apia", "2011-12-29T20:00:00Z", 3);
        assert_eq!(days, ["2011-12-29 10:00", "2011-12-30 10:00", "2011-12-31 10:00"]);
    }

    #[test]
    fn half_hour_and_southern_zones_have_exact_days() {
        let days = boundaries(Period::Day, "Asia/Kolkata", "2027-06-01T12:00:00Z", 2);
        assert_eq!(days, ["2027-05-31 18:30", "2027-06-01 18:30"]);
        // Lord Howe changes by half an hour; summer ends in April.
        let (summer, winter) = ("2027-04-03T20:00:00Z", "2027-10-02T20:00:00Z");
        assert_eq!(hours("Australia/Lord_Howe", summer), 24.5);
        assert_eq!(hours("Australia/Lord_Howe", winter), 23.5);
        assert_eq!(hours("Australia/Sydney", summer), 25.0);
        assert_eq!(hours("Australia/Sydney", winter), 23.0);
    }

    #[test]
    fn months_have_actual_lengths() {
        let months = boundaries(Period::Month, "UTC", "2028-01-31T23:59:59Z", 4);
        let starts =
            ["2028-01-01 00:00", "2028-02-01 00:00", "2028-03-01 00:00", "2028-04-01 00:00"];
        assert_eq!(months, starts);
        let days = |time| {
            let month = Calendar::new(Period::Month, "UTC").unwrap().around(at(time));
            (month.end - month.start).as_secs() / 86_400
        };
        assert_eq!(days("2028-02-29T12:00:00Z"), 29);
        assert_eq!(days("2027-02-28T12:00:00Z"), 28);
        assert_eq!(days("2100-02-28T12:00:00Z"), 28);
        let months = boundaries(Period::Month, "Europe/Berlin", "2027-03-31T12:00:00Z", 2);
        assert_eq!(months, ["2027-02-28 23:00", "2027-03-31 22:00"]);
    }

    #[test]
    fn weeks_start_on_monday() {
        let weeks = boundaries(Period::Week, "Europe/Berlin", "2027-03-27T12:00:00Z", 3);
        assert_eq!(weeks, ["2027-03-21 23:00", "2027-03-28 22:00", "2027-04-04 22:00"]);
    }

    #[test]
    fn every_time_lies_in_a_window() {
        let calendar = |period| Calendar::new(period, "America/Los_Angeles").unwrap();
        for period in [Period::Day, Period::Week, Period::Month] {
            let first = calendar(period).around(Timestamp::UNIX_EPOCH);
            assert_eq!(first.start, Timestamp::UNIX_EPOCH);
            let last = calendar(period).around(Timestamp::MAX);
            assert!(last.contains(&(Timestamp::MAX - NANOSECOND)));
        }
        assert_eq!(
            calendar(Period::Day).around(Timestamp::from_nanos(1)).end,
            at("1970-01-01T08:00:00Z")
        );
        // The nominal length from 2101 on, by the offset of its start.
        let late = calendar(Period::Day).around(at("2101-07-01T12:00:00Z"));
        assert_eq!(late.start, at("2101-07-01T08:00:00Z"));
        let late = calendar(Period::Month).around(at("2101-01-31T12:00:00Z"));
        assert_eq!(late.start, at("2101-01-31T08:00:00Z"));
    }

    /// Compares every window of a century with the dates of the zone.
    #[test]
    fn window_has_one_local_date() {
        for zone in ["America/Los_Angeles", "Africa/Casablanca", "Pacific/Apia", "Asia/Kolkata"] {
            let day = Calendar::new(Period::Day, zone).unwrap();
            let clock = jiff::tz::TimeZone::get(zone).unwrap();
            let date = |time: Timestamp| {
                let time = jiff::Timestamp::from_nanosecond(time.as_nanos().into()).unwrap();
                time.to_zoned(clock.clone()).date()
            };
            let mut window = day.around(at("1970-01-03T12:00:00Z"));
            while window.end < at("2100-12-31T00:00:00Z") {
                assert_eq!(date(window.start), date(window.end - NANOSECOND), "{zone} {window:?}");
                assert!(date(window.end) > date(window.start), "{zone} {window:?}");
                window = day.around(window.end);
            }
        }
    }

    #[test]
    fn unknown_zone_is_an_error() {
        let zone = |name| Calendar::new(Period::Day, name).map(|c| c.zone().to_owned());
        assert_eq!(zone("America/Los_Angeles").as_deref(), Ok("America/Los_Angeles"));
        let unknown = zone("America/Los_Angles").unwrap_err();
        assert_eq!(
            unknown.to_string(),
            r#"unknown time zone "America/Los_Angles"; give an IANA name such as Europe/Berlin"#
        );
        assert!(zone("").is_err());
    }

    #[test]
    fn zones_are_bundled() {
        let bundled = jiff::tz::TimeZoneDatabase::bundled();
        assert!(bundled.get("America/Los_Angeles").is_ok());
    }
}
