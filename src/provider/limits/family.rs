use std::time::Duration;

use http::HeaderMap;
use smallvec::SmallVec;

use super::per::{Level, Per};
use super::reset::Context;
use super::text::Texts;
use super::{LimitReading, LimitReadings};
use crate::quota::Dimension;

/// The headers in which a provider states its limits: `<prefix>limit-<row>`, or
/// `<prefix><row>-limit`; the same for `remaining`, `reset` and `renewalperiod`.
pub(in crate::provider) struct Family {
    pub(super) prefixes: &'static [&'static str],
    pub(super) rows: &'static [&'static [Row]],
    pub(super) reset: fn(&str, &Context<'_>) -> Option<Duration>,
    /// Whether what remains of a known limit may be less than nothing.
    pub(super) overdraws: bool,
}

/// One limit, and what its headers are called besides their prefix.
pub(in crate::provider) struct Row {
    pub(super) name: &'static str,
    pub(super) dimension: fn() -> Dimension,
    pub(super) per: Per,
    pub(super) granularity: u64,
}

impl Family {
    /// What the headers say, in the order of the table.
    pub(in crate::provider) fn read(&self, headers: &HeaderMap) -> LimitReadings {
        let mut told: SmallVec<[(usize, Texts<'_>); 4]> = SmallVec::new();
        for (name, value) in headers {
            let Some((row, part)) = self.find(name.as_str()) else { continue };
            let place = told.iter().position(|(other, _)| *other == row).unwrap_or(told.len());
            if place == told.len() {
                told.push((row, Texts::default()));
            }
            if let Some(text) = told[place].1.of(part) {
                text.put(value);
            }
        }
        let texts = |row: usize| told.iter().find(|(other, _)| *other == row).map(|(_, t)| t);
        let rows = self.rows().enumerate().filter_map(|(place, row)| Some((row, texts(place)?)));
        rows.filter_map(|(row, texts)| self.reading(row, texts, headers)).collect()
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> {
        self.rows.iter().copied().flatten()
    }

    /// The place of the limit that a header is of, and what it says of it.
    fn find<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let rest = self.prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
        let (part, name) = match rest.split_once('-') {
            Some((part, name)) if Texts::is_part(part) => (part, name),
            Some(_) => rest.rsplit_once('-').map(|(name, part)| (part, name))?,
            None => (rest, ""),
        };
        let row = self.rows().position(|row| row.name == name)?;
        Texts::is_part(part).then_some((row, part))
    }

    fn reading(&self, row: &Row, texts: &Texts<'_>, headers: &HeaderMap) -> Option<LimitReading> {
        let level = self.level(texts);
        if level.limit.is_none() && level.remaining.is_none() {
            return None;
        }
        let window = row.per.stated(texts);
        let context = Context { level, window, headers };
        let reset = texts.reset.get().and_then(|text| (self.reset)(text, &context));
        Some(LimitReading {
            dimension: (row.dimension)(),
            window: window.unwrap_or_else(|| row.per.computed(level, reset)),
            limit: level.limit,
            remaining: level.remaining,
            reset,
            granularity: row.granularity,
        })
    }

    fn level(&self, texts: &Texts<'_>) -> Level {
        // A limit of zero is how an unknown one is written; then "none remains" is unknown too.
        let limit = texts.limit.number().and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
        let remaining = match (texts.remaining.number(), limit) {
            (Some(left), Some(_)) if left < -1 && self.overdraws => Some(0),
            (left, Some(limit)) => unsigned(left).filter(|left| *left <= limit),
            (left, None) => unsigned(left).filter(|left| *left > 0),
        };
        Level { limit, remaining }
    }
}

fn unsigned(number: Option<i64>) -> Option<u64> {
    number.and_then(|number| u64::try_from(number).ok())
}
