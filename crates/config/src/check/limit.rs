use std::num::NonZeroU64;

use paceline_limiter::quota::{Algorithm, Calendar, Dimension, Limit, UnknownZone, Window};
use paceline_limiter::seam::{self, LimitParts};

use super::Check;
use crate::fields::{Amount, LimitFields, WindowText};
use crate::read::nearest;
use crate::tree::{FieldPath, quote};

impl Check<'_> {
    /// Returns the limit of these fields, or `None` if its amount is 0 or a problem was reported.
    pub(super) fn limit(&mut self, path: &FieldPath, fields: &LimitFields) -> Option<Limit> {
        let dimension = self.dimension(path, &fields.dimension)?;
        let amount = self.amount(&path.key("limit"), &dimension, fields.limit)?;
        let whole = self.whole(path, &dimension, fields);
        let limit = match (&dimension, fields.window) {
            (Dimension::Concurrency, _) => self.in_flight(path, fields, amount),
            (_, None) => {
                self.report(path, "`window` is missing; give a duration such as 60s or 1d, `day` with a `zone`, or `total`");
                None
            }
            (_, Some(WindowText::Total)) => {
                self.refuse_counting(
                    path,
                    fields,
                    "not allowed with a window of `total`; remove it",
                );
                Limit::total(dimension, amount)
            }
            (_, Some(WindowText::Calendar(period))) => {
                let calendar = self.calendar(path, fields, period)?;
                Limit::on_calendar(dimension, amount, &calendar)
            }
            (_, Some(WindowText::Length(length))) => {
                if fields.zone.is_some() {
                    let message =
                        format!("only allowed with a window of day, week or month, not {length}");
                    self.report(&path.key("zone"), message);
                }
                let window = Window::new(length.0);
                let window = window.map_err(|_| {
                    let message = format!("must be from 1ms to 366d, not {length}");
                    self.report(&path.key("window"), message);
                });
                let burst = self.burst(path, &dimension, fields);
                let limit = Limit::new(dimension, amount, window.ok()?)?;
                Some(match (fields.algorithm, burst) {
                    (_, Some(burst)) => limit.with_burst(burst),
                    (Some(algorithm), None) => limit.with_algorithm(algorithm),
                    (None, None) => limit,
                })
            }
        }?;
        Some(seam::limit_of(LimitParts { debt: fields.debt, whole, ..seam::limit_parts(&limit) }))
    }

    /// Returns the whole limit. Reports one that is smaller than the part.
    fn whole(
        &mut self,
        path: &FieldPath,
        dimension: &Dimension,
        fields: &LimitFields,
    ) -> Option<NonZeroU64> {
        let path = path.key("whole");
        let whole = self.amount(&path, dimension, fields.whole?)?;
        let part = self.amount(&path, dimension, fields.burst.unwrap_or(fields.limit))?;
        if whole < part {
            self.report(&path, "must be at least the part, which is `burst`, else `limit`");
        }
        NonZeroU64::new(whole)
    }

    fn dimension(&mut self, path: &FieldPath, name: &str) -> Option<Dimension> {
        let known = seam::DIMENSIONS;
        if let Some(known) = known.iter().find(|dimension| dimension.as_str() == name) {
            return Some(known.clone());
        }
        let names = known.each_ref().map(Dimension::as_str);
        // A misspelt name would create a custom dimension that no request has a cost in.
        let problem = match nearest(name, &names) {
            Some(near) => format!("unknown dimension {} (did you mean `{near}`?)", quote(name)),
            None if name.trim().is_empty() => "must not be empty".to_owned(),
            None => return Some(Dimension::custom(name)),
        };
        self.report(&path.key("dimension"), problem);
        None
    }

    /// Returns a limit on requests in flight, and reports fields that it does not support.
    fn in_flight(&mut self, path: &FieldPath, fields: &LimitFields, amount: u64) -> Option<Limit> {
        let message = "not allowed for requests in flight; remove it";
        if fields.window.is_some() {
            self.report(&path.key("window"), message);
        }
        self.refuse_counting(path, fields, message);
        Limit::new(Dimension::Concurrency, amount, Window::MINUTE)
    }

    /// Reports fields that state how a limit counts.
    fn refuse_counting(&mut self, path: &FieldPath, fields: &LimitFields, message: &str) {
        let given = [
            ("algorithm", fields.algorithm.is_some()),
            ("burst", fields.burst.is_some()),
            ("zone", fields.zone.is_some()),
        ];
        for (name, _) in given.iter().filter(|(_, is_given)| *is_given) {
            self.report(&path.key(name), message);
        }
    }

    fn calendar(
        &mut self,
        path: &FieldPath,
        fields: &LimitFields,
        period: paceline_limiter::quota::Period,
    ) -> Option<Calendar> {
        let others = [("algorithm", fields.algorithm.is_some()), ("burst", fields.burst.is_some())];
        for (name, _) in others.iter().filter(|(_, is_given)| *is_given) {
            self.report(&path.key(name), "not allowed with a calendar window; remove it");
        }
        let Some(zone) = &fields.zone else {
            let message = "a calendar window needs a `zone` such as UTC or America/Los_Angeles; for a window of \
                        fixed length write 1d, 7d or 30d";
            self.report(&path.key("window"), message);
            return None;
        };
        let calendar = Calendar::new(period, zone);
        let unknown = |_: UnknownZone| {
            let name = quote(zone);
            let message =
                format!("unknown time zone {name}; give an IANA name such as Europe/Berlin");
            self.report(&path.key("zone"), message);
        };
        calendar.map_err(unknown).ok()
    }

    /// Returns the amount in the unit of the dimension, or reports one that isn't whole.
    fn amount(&mut self, path: &FieldPath, dimension: &Dimension, amount: Amount) -> Option<u64> {
        if dimension.is_usd() {
            return Some(amount.usd().as_micros());
        }
        let whole = amount.whole();
        if whole.is_none() {
            self.report(path, "must be a whole number; only `usd` has decimals");
        }
        whole
    }

    /// Returns the burst. Reports a burst of 0, and a burst of an algorithm other than the token bucket.
    fn burst(
        &mut self,
        path: &FieldPath,
        dimension: &Dimension,
        fields: &LimitFields,
    ) -> Option<u64> {
        let burst = self.amount(&path.key("burst"), dimension, fields.burst?)?;
        if !matches!(fields.algorithm, None | Some(Algorithm::TokenBucket)) {
            let message =
                "only a token bucket has a burst; remove it, or set `algorithm: token_bucket`";
            self.report(&path.key("burst"), message);
        }
        if burst == 0 {
            self.report(&path.key("burst"), "must be at least 1");
        }
        Some(burst)
    }
}
