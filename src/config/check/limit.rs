use super::Check;
use crate::config::fields::{LimitFields, WindowText};
use crate::config::read::nearest;
use crate::config::tree::{Steps, quote};
use crate::quota::{Algorithm, Calendar, Dimension, Limit, UnknownZone, Window};

impl Check<'_> {
    /// A limit in full; `None` if it is none, or wrong.
    pub(super) fn limit(&mut self, steps: &Steps, fields: &LimitFields) -> Option<Limit> {
        let dimension = self.dimension(steps, &fields.dimension)?;
        let limit = match (&dimension, fields.window) {
            (Dimension::Concurrency, _) => self.in_flight(steps, fields),
            (_, None) => {
                self.wrong(steps, "`window` is missing, as 60s, 1d, or day with a `zone`");
                None
            }
            (_, Some(WindowText::Calendar(period))) => {
                let calendar = self.calendar(steps, fields, period)?;
                Limit::on_calendar(dimension, fields.limit, &calendar)
            }
            (_, Some(WindowText::Length(length))) => {
                if fields.zone.is_some() {
                    let what = "is for a window of day, week or month; the window is ";
                    self.wrong(&steps.key("zone"), format!("{what}{length}"));
                }
                let window = Window::new(length.0);
                let window = window.map_err(|_| {
                    let what = format!("must be from 1ms to 366d, not {length}");
                    self.wrong(&steps.key("window"), what);
                });
                self.burst(steps, fields);
                let limit = Limit::new(dimension, fields.limit, window.ok()?)?;
                Some(match (fields.algorithm, fields.burst) {
                    (_, Some(burst)) => limit.with_burst(burst),
                    (Some(algorithm), None) => limit.with_algorithm(algorithm),
                    (None, None) => limit,
                })
            }
        }?;
        Some(if fields.debt { limit.with_debt() } else { limit })
    }

    fn dimension(&mut self, steps: &Steps, name: &str) -> Option<Dimension> {
        let known = Dimension::KNOWN;
        if let Some(known) = known.iter().find(|dimension| dimension.as_str() == name) {
            return Some(known.clone());
        }
        let names = known.each_ref().map(Dimension::as_str);
        // A slip would make a dimension of its own, which nothing is ever charged in.
        let problem = match nearest(name, &names) {
            Some(near) => format!("unknown dimension {} (did you mean `{near}`?)", quote(name)),
            None if name.trim().is_empty() => "must not be empty".to_owned(),
            None => return Some(Dimension::custom(name)),
        };
        self.wrong(&steps.key("dimension"), problem);
        None
    }

    /// How many requests in flight: nothing else can be said of them.
    fn in_flight(&mut self, steps: &Steps, fields: &LimitFields) -> Option<Limit> {
        let others = [
            ("window", fields.window.is_some()),
            ("algorithm", fields.algorithm.is_some()),
            ("burst", fields.burst.is_some()),
            ("zone", fields.zone.is_some()),
        ];
        for (name, _) in others.iter().filter(|(_, said)| *said) {
            self.wrong(&steps.key(name), "means nothing for requests in flight; leave it out");
        }
        Limit::new(Dimension::Concurrency, fields.limit, Window::MINUTE)
    }

    fn calendar(
        &mut self,
        steps: &Steps,
        fields: &LimitFields,
        period: crate::quota::Period,
    ) -> Option<Calendar> {
        let others = [("algorithm", fields.algorithm.is_some()), ("burst", fields.burst.is_some())];
        for (name, _) in others.iter().filter(|(_, said)| *said) {
            self.wrong(&steps.key(name), "means nothing on a calendar; leave it out");
        }
        let Some(zone) = &fields.zone else {
            let what = "a day, week or month needs a `zone`, as UTC or America/Los_Angeles; \
                        without one write 1d, 7d or 30d";
            self.wrong(&steps.key("window"), what);
            return None;
        };
        let calendar = Calendar::new(period, zone);
        let unknown = |error: UnknownZone| {
            let what = match cfg!(feature = "zones") {
                true => format!(
                    "time zone {} is unknown; give an IANA name, as Europe/Berlin",
                    quote(zone)
                ),
                false => error.to_string(),
            };
            self.wrong(&steps.key("zone"), what);
        };
        calendar.map_err(unknown).ok()
    }

    /// Reports a burst of 0, and one of another algorithm than a token bucket.
    fn burst(&mut self, steps: &Steps, fields: &LimitFields) {
        let Some(burst) = fields.burst else { return };
        if !matches!(fields.algorithm, None | Some(Algorithm::TokenBucket)) {
            let what =
                "only a token bucket has a burst; remove it, or set `algorithm: token_bucket`";
            self.wrong(&steps.key("burst"), what);
        }
        if burst == 0 {
            self.wrong(&steps.key("burst"), "must be at least 1");
        }
    }
}
