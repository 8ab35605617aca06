use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limiter::QuotaOrigin;
use crate::quota::{Algorithm, Calendar, Limit, Margin, Period, Quota, Window};
use crate::store::dimension;

/// Serializes a quota as JSON; `None` if this version can't express it.
pub(super) fn write(quota: &Quota) -> Option<String> {
    let limits = quota.limits().iter().map(StoredLimit::of).collect();
    let stored = StoredQuota { limits, shared: quota.is_shared(), margin: quota.margin() };
    serde_json::to_string(&stored).ok()
}

/// Parses a quota; `None` if the text is invalid.
pub(super) fn read(text: &str) -> Option<Quota> {
    let stored: StoredQuota = serde_json::from_str(text).ok()?;
    let limits: Option<Vec<Limit>> = stored.limits.iter().map(StoredLimit::limit).collect();
    let quota = limits?.into_iter().fold(Quota::new(), Quota::limit);
    let quota = if stored.shared { quota.shared() } else { quota };
    Some(match stored.margin {
        Some(margin) => quota.with_margin(margin),
        None => quota,
    })
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
struct StoredQuota {
    limits: Vec<StoredLimit>,
    #[serde(default)]
    shared: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    margin: Option<Margin>,
}

#[derive(Serialize, Deserialize)]
struct StoredLimit {
    dimension: String,
    amount: u64,
    window_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    algorithm: Option<Algorithm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<(Period, String)>,
    #[serde(default)]
    debt: bool,
}

impl StoredLimit {
    fn of(limit: &Limit) -> Self {
        Self {
            dimension: dimension::write(limit.dimension()),
            amount: limit.amount(),
            window_ns: limit.window().as_nanos(),
            algorithm: limit.algorithm(),
            burst: limit.burst(),
            zone: limit.calendar().map(|on| (on.period(), on.zone().to_owned())),
            debt: limit.has_debt(),
        }
    }

    fn limit(&self) -> Option<Limit> {
        let dimension = dimension::read(&self.dimension)?;
        let window = Window::new(Duration::from_nanos(self.window_ns)).ok()?;
        let limit = match (&self.zone, self.algorithm) {
            (Some((period, zone)), _) => {
                let calendar = Calendar::new(*period, zone).ok()?;
                Limit::on_calendar(dimension, self.amount, &calendar)?
            }
            (None, None) => Limit::new(dimension, self.amount, window)?,
            (None, Some(Algorithm::TokenBucket)) => {
                Limit::new(dimension, self.amount, window)?.with_burst(self.burst.unwrap_or(0))
            }
            (None, Some(algorithm)) => {
                Limit::new(dimension, self.amount, window)?.with_algorithm(algorithm)
            }
        };
        Some(if self.debt { limit.with_debt() } else { limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Dimension;

    #[test]
    fn quotas_round_trip() {
        let day = Calendar::new(Period::Month, "America/Los_Angeles").unwrap();
        let own = |name, algorithm| {
            let limit = Limit::new(Dimension::custom(name), u64::MAX, Window::HOUR).unwrap();
            limit.with_algorithm(algorithm)
        };
        let quota = Quota::new().rpm(5).tpm(6).rpd(7).itpm(8).otpm(9).concurrency(2);
        let burst = Limit::per_hour(Dimension::custom("requests"), u64::MAX);
        let quota = quota.limit(burst.map(|limit| limit.with_burst(7).with_debt()));
        let quota = quota.limit(own("a", Algorithm::TokenBucket));
        let quota = quota.limit(own("b", Algorithm::SlidingWindow));
        let quota = quota.limit(own("c", Algorithm::FixedWindow));
        let quota = quota.limit(own("d", Algorithm::ClockWindow));
        let quota = quota.on_calendar(Dimension::Tokens, 9, &day).shared();
        let quota = quota.with_margin(Margin::NONE);
        assert_eq!(read(&write(&quota).unwrap()).unwrap(), quota);
        assert_eq!(read(&write(&Quota::new()).unwrap()).unwrap(), Quota::new());
    }

    #[test]
    fn invalid_quota_text_is_rejected() {
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
