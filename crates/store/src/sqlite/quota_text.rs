use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use paceline_limiter::limiter::QuotaOrigin;
use paceline_limiter::quota::{Algorithm, Calendar, Limit, Margin, Period, Quota, Share};
use paceline_limiter::seam::{self, Counting, LimitParts, QuotaParts};
use serde::{Deserialize, Serialize};

use super::bucket_id::stored_window;
use crate::{dimension, nanos};

/// Serializes a quota as JSON; `None` if this version can't express it.
pub(super) fn write(quota: &Quota) -> Option<String> {
    let QuotaParts { limits, shared, margin, weight, utilization, max_wait } =
        seam::quota_parts(quota);
    let stored = StoredQuota {
        limits: limits.iter().map(StoredLimit::of).collect(),
        shared,
        margin,
        weight: weight.and_then(NonZeroU32::new),
        utilization,
        max_wait_ns: max_wait.map(nanos),
    };
    serde_json::to_string(&stored).ok()
}

/// Parses a quota; `None` if the text is invalid.
pub(super) fn read(text: &str) -> Option<Quota> {
    let StoredQuota { limits, shared, margin, weight, utilization, max_wait_ns } =
        serde_json::from_str(text).ok()?;
    let limits: Vec<Limit> = limits.into_iter().map(StoredLimit::limit).collect::<Option<_>>()?;
    let (weight, max_wait) = (weight.map(NonZeroU32::get), max_wait_ns.map(Duration::from_nanos));
    Some(seam::quota_of(QuotaParts { limits, shared, margin, weight, utilization, max_wait }))
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    utilization: Option<Share>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_wait_ns: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct StoredLimit {
    dimension: String,
    amount: NonZeroU64,
    window_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    algorithm: Option<Algorithm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<NonZeroU64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<(Period, String)>,
    #[serde(default)]
    debt: bool,
    /// The capacity of the whole limit, if this is a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<NonZeroU64>,
}

impl StoredLimit {
    fn of(limit: &Limit) -> Self {
        let LimitParts { dimension, amount, window, counting, debt, whole } =
            seam::limit_parts(limit);
        let (algorithm, burst, zone) = match counting {
            Counting::Profile => (None, None, None),
            Counting::Algorithm { algorithm, burst } => (Some(algorithm), burst, None),
            Counting::Calendar(on) => (None, None, Some((on.period(), on.zone().to_owned()))),
        };
        Self {
            dimension: dimension::write(&dimension),
            amount,
            window_ns: window.as_nanos(),
            algorithm,
            burst,
            zone,
            debt,
            whole,
        }
    }

    fn limit(self) -> Option<Limit> {
        let Self { dimension, amount, window_ns, algorithm, burst, zone, debt, whole } = self;
        let dimension = dimension::read(&dimension)?;
        let window = stored_window(window_ns)?;
        let counting = match (zone, algorithm) {
            (Some((period, zone)), _) => Counting::Calendar(Calendar::new(period, &zone).ok()?),
            (None, Some(algorithm)) => {
                let burst = burst.filter(|_| algorithm == Algorithm::TokenBucket);
                Counting::Algorithm { algorithm, burst }
            }
            (None, None) => Counting::Profile,
        };
        let counting = if window.is_endless() { Counting::Profile } else { counting };
        Some(seam::limit_of(LimitParts { dimension, amount, window, counting, debt, whole }))
    }
}

#[cfg(test)]
mod tests {
    use paceline_limiter::quota::{Dimension, Window};

    use super::*;

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
        let quota = quota.with_margin(Margin::NONE).with_weight(3);
        let quota = quota.with_share(Share::percent(40).unwrap());
        let quota = quota.with_utilization(Share::percent(90).unwrap());
        let quota = quota.max_wait(Duration::new(3, 5));
        assert_eq!(read(&write(&quota).unwrap()).unwrap(), quota);
        for quota in [Quota::new(), Quota::new().rpm(1).reject()] {
            assert_eq!(read(&write(&quota).unwrap()).unwrap(), quota);
        }
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
