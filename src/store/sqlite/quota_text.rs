use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limiter::QuotaOrigin;
use crate::quota::{Algorithm, Calendar, Limit, Period, Quota, Window};
use crate::store::dimension;

/// A quota as a database keeps it: JSON. `None` for one that this version can't tell.
pub(super) fn write(quota: &Quota) -> Option<String> {
    let limits = quota.limits().iter().map(Record::of).collect::<Option<_>>()?;
    serde_json::to_string(&Records { limits, shared: quota.is_shared() }).ok()
}

/// The quota that a text tells; `None` if it tells none.
pub(super) fn read(text: &str) -> Option<Quota> {
    let records: Records = serde_json::from_str(text).ok()?;
    let limits: Option<Vec<Limit>> = records.limits.iter().map(Record::limit).collect();
    let quota = limits?.into_iter().fold(Quota::new(), Quota::limit);
    Some(if records.shared { quota.shared() } else { quota })
}

pub(super) fn write_origin(origin: QuotaOrigin) -> &'static str {
    match origin {
        QuotaOrigin::Set => "set",
        QuotaOrigin::Learned => "learned",
        _ => "configured",
    }
}

pub(super) fn read_origin(text: &str) -> Option<QuotaOrigin> {
    match text {
        "configured" => Some(QuotaOrigin::Configured),
        "set" => Some(QuotaOrigin::Set),
        "learned" => Some(QuotaOrigin::Learned),
        _ => None,
    }
}

#[derive(Serialize, Deserialize)]
struct Records {
    limits: Vec<Record>,
    #[serde(default)]
    shared: bool,
}

#[derive(Serialize, Deserialize)]
struct Record {
    dimension: String,
    amount: u64,
    window_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    algorithm: Option<Counted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<NonZeroU64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<(Unit, String)>,
    #[serde(default)]
    debt: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Counted {
    TokenBucket,
    SlidingWindow,
    FixedWindow,
    ClockWindow,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Day,
    Week,
    Month,
}

impl Record {
    fn of(limit: &Limit) -> Option<Self> {
        let burst = match limit.algorithm() {
            Some(Algorithm::TokenBucket { burst }) => burst,
            _ => None,
        };
        Some(Self {
            dimension: dimension::write(limit.dimension()),
            amount: limit.amount(),
            window_ns: limit.window().as_nanos(),
            algorithm: limit.algorithm().map(Counted::of),
            burst,
            zone: limit.calendar().map(|on| (Unit::of(on.period()), on.zone().to_owned())),
            debt: limit.has_debt(),
        })
    }

    fn limit(&self) -> Option<Limit> {
        let dimension = dimension::read(&self.dimension)?;
        let window = Window::new(Duration::from_nanos(self.window_ns)).ok()?;
        let limit = match (&self.zone, self.algorithm) {
            (Some((unit, zone)), _) => {
                let calendar = Calendar::new(unit.period(), zone).ok()?;
                Limit::on_calendar(dimension, self.amount, &calendar)?
            }
            (None, None) => Limit::new(dimension, self.amount, window)?,
            (None, Some(counted)) => {
                let algorithm = counted.algorithm(self.burst);
                Limit::new(dimension, self.amount, window)?.with_algorithm(algorithm)
            }
        };
        Some(if self.debt { limit.with_debt() } else { limit })
    }
}

impl Counted {
    fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::TokenBucket { .. } => Self::TokenBucket,
            Algorithm::SlidingWindow => Self::SlidingWindow,
            Algorithm::FixedWindow => Self::FixedWindow,
            Algorithm::ClockWindow => Self::ClockWindow,
        }
    }

    fn algorithm(self, burst: Option<NonZeroU64>) -> Algorithm {
        match self {
            Self::TokenBucket => Algorithm::TokenBucket { burst },
            Self::SlidingWindow => Algorithm::SlidingWindow,
            Self::FixedWindow => Algorithm::FixedWindow,
            Self::ClockWindow => Algorithm::ClockWindow,
        }
    }
}

impl Unit {
    fn of(period: Period) -> Self {
        match period {
            Period::Day => Self::Day,
            Period::Week => Self::Week,
            Period::Month => Self::Month,
        }
    }

    fn period(self) -> Period {
        match self {
            Self::Day => Period::Day,
            Self::Week => Period::Week,
            Self::Month => Period::Month,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Dimension;

    #[test]
    fn every_quota_comes_back_as_it_was() {
        let day = Calendar::new(Period::Month, "America/Los_Angeles").unwrap();
        let own = |name, algorithm| {
            let limit = Limit::new(Dimension::custom(name), u64::MAX, Window::HOUR).unwrap();
            limit.with_algorithm(algorithm)
        };
        let burst = Algorithm::TokenBucket { burst: NonZeroU64::new(7) };
        let quota = Quota::new().rpm(5).tpm(6).rpd(7).itpm(8).otpm(9).concurrency(2);
        let quota = quota.limit(own("requests", burst).with_debt());
        let quota = quota.limit(own("a", Algorithm::TOKEN_BUCKET));
        let quota = quota.limit(own("b", Algorithm::SlidingWindow));
        let quota = quota.limit(own("c", Algorithm::FixedWindow));
        let quota = quota.limit(own("d", Algorithm::ClockWindow));
        let quota = quota.on_calendar(Dimension::Tokens, 9, &day).shared();
        assert_eq!(read(&write(&quota).unwrap()).unwrap(), quota);
        assert_eq!(read(&write(&Quota::new()).unwrap()).unwrap(), Quota::new());
    }

    #[test]
    fn a_text_that_tells_no_quota_is_none() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"limits":[{}]}"#,
            r#"{"limits":[{"dimension":"x","amount":1,"window_ns":1}]}"#,
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
