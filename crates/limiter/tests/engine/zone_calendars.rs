//! Calendars for the property tests, and the dates in their zones.

use std::fmt;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use paceline_limiter::quota::{Calendar, Period};
use proptest::prelude::*;

/// A calendar of the engine with an independent time zone.
pub(super) struct ZoneCalendar {
    pub(super) calendar: Calendar,
    wall: TimeZone,
}

impl ZoneCalendar {
    /// Returns the number of the day, week or month that contains a time.
    pub(super) fn name(&self, time: u64) -> (i64, i64) {
        let time = Timestamp::from_nanosecond(time.into()).unwrap();
        let date = time.to_zoned(self.wall.clone()).date();
        match self.calendar.period() {
            Period::Day => (date.year().into(), date.day_of_year().into()),
            Period::Week => {
                let week = date.iso_week_date();
                (week.year().into(), week.week().into())
            }
            _ => (date.year().into(), date.month().into()),
        }
    }
}

impl fmt::Debug for ZoneCalendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {}", self.calendar.period(), self.calendar.zone())
    }
}

/// Days of 23, 23.5, 24, 24.5 and 25 hours, weeks and months. One of the days has no midnight.
pub(super) static ZONE_CALENDARS: LazyLock<Vec<ZoneCalendar>> = LazyLock::new(|| {
    [
        (Period::Day, "America/Los_Angeles"),
        (Period::Day, "America/Sao_Paulo"),
        (Period::Day, "Australia/Lord_Howe"),
        (Period::Day, "Asia/Kolkata"),
        (Period::Week, "Europe/Berlin"),
        (Period::Month, "America/Los_Angeles"),
        (Period::Month, "UTC"),
    ]
    .into_iter()
    .map(|(period, zone)| ZoneCalendar {
        calendar: Calendar::new(period, zone).unwrap(),
        wall: TimeZone::get(zone).unwrap(),
    })
    .collect()
});

/// Generates times shortly before a clock change or the end of a month.
pub(super) fn days() -> impl Strategy<Value = u64> {
    let times = [
        "2027-03-13T20:00:00Z", // Los Angeles: 23 hours, on the 14th
        "2027-03-14T08:00:00Z", // its midnight
        "2027-11-07T07:00:00Z", // Los Angeles: 25 hours
        "2018-11-03T15:00:00Z", // Sao Paulo: no midnight on the 4th
        "2018-02-17T02:00:00Z", // Sao Paulo: 25 hours
        "2027-04-03T13:00:00Z", // Lord Howe: 24.5 hours
        "2027-03-28T00:30:00Z", // Berlin: a week an hour short
        "2028-02-28T23:00:00Z", // a leap day
        "2027-02-28T23:59:59Z", // no leap day
    ];
    proptest::sample::select(times.to_vec())
        .prop_map(|time| time.parse::<Timestamp>().unwrap().as_nanosecond().try_into().unwrap())
}
