use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use paceline_limiter::limiter::{NamedQuota, QuotaOrigin};
use paceline_limiter::quota::{Algorithm, Calendar, Dimension, Limit, Margin, Period, Share};
use paceline_limiter::seam::{self, Counting, LimitParts, QuotaParts};
use serde::{Deserialize, Serialize};

use super::text;
use crate::nanos;

/// The stored form of a quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredQuota {
    origin: StoredOrigin,
    #[serde(default, skip_serializing_if = "is_false")]
    shared: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    margin: Option<Margin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    utilization: Option<Share>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_wait_ns: Option<u64>,
    limits: Vec<StoredLimit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredOrigin {
    Configured,
    Set,
    Learned,
}

/// A limit, serialized as [`LimitFields`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "LimitFields", try_from = "LimitFields")]
struct StoredLimit(Limit);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitFields {
    #[serde(with = "text::dimension")]
    dimension: Dimension,
    limit: u64,
    /// A duration or `total`; with a zone, `day`, `week` or `month`.
    window: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    algorithm: Option<Algorithm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    debt: bool,
    /// The capacity of the whole limit, if this is a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<NonZeroU64>,
}

impl StoredQuota {
    pub(super) fn named(&self, name: &str) -> NamedQuota {
        let Self { origin, shared, margin, weight, utilization, max_wait_ns, limits } = self;
        let quota = seam::quota_of(QuotaParts {
            limits: limits.iter().map(|StoredLimit(limit)| limit.clone()).collect(),
            shared: *shared,
            margin: *margin,
            weight: weight.map(NonZeroU32::get),
            utilization: *utilization,
            max_wait: max_wait_ns.map(Duration::from_nanos),
        });
        let origin = match origin {
            StoredOrigin::Configured => QuotaOrigin::Configured,
            StoredOrigin::Set => QuotaOrigin::Set,
            StoredOrigin::Learned => QuotaOrigin::Learned,
        };
        NamedQuota::new(name, quota, origin)
    }
}

impl From<&NamedQuota> for StoredQuota {
    fn from(NamedQuota { quota, origin, .. }: &NamedQuota) -> Self {
        let origin = match origin {
            // Read again at the next start.
            QuotaOrigin::Configured | QuotaOrigin::Provider => StoredOrigin::Configured,
            QuotaOrigin::Set => StoredOrigin::Set,
            QuotaOrigin::Learned => StoredOrigin::Learned,
        };
        let QuotaParts { limits, shared, margin, weight, utilization, max_wait } =
            seam::quota_parts(quota);
        let weight = weight.and_then(NonZeroU32::new);
        let max_wait_ns = max_wait.map(nanos);
        let limits = limits.into_iter().map(StoredLimit).collect();
        Self { origin, shared, margin, weight, utilization, max_wait_ns, limits }
    }
}

impl From<StoredLimit> for LimitFields {
    fn from(StoredLimit(limit): StoredLimit) -> Self {
        let LimitParts { dimension, amount, window, counting, debt, whole } =
            seam::limit_parts(&limit);
        let length = text::format_window(window);
        let (window, zone, algorithm, burst) = match counting {
            Counting::Profile => (length, None, None, None),
            Counting::Algorithm { algorithm, burst } => (length, None, Some(algorithm), burst),
            Counting::Calendar(calendar) => {
                let period = calendar.period().as_str().to_owned();
                (period, Some(calendar.zone().to_owned()), None, None)
            }
        };
        let burst = burst.map(NonZeroU64::get);
        Self { dimension, limit: amount.get(), window, zone, algorithm, burst, debt, whole }
    }
}

impl TryFrom<LimitFields> for StoredLimit {
    type Error = String;

    fn try_from(fields: LimitFields) -> Result<Self, String> {
        let LimitFields { dimension, limit, window, zone, algorithm, burst, debt, whole } = fields;
        let zero = "limit: must be at least 1; omit the entry for no limit";
        let amount = NonZeroU64::new(limit).ok_or(zero)?;
        let (window, counting) = match (zone, algorithm, burst) {
            (Some(_), Some(_), _) => {
                return Err("algorithm: not allowed with `zone`; remove one of them".into());
            }
            (zone, algorithm, Some(_))
                if zone.is_some() || algorithm != Some(Algorithm::TokenBucket) =>
            {
                return Err("burst: only allowed with `algorithm: token_bucket`".into());
            }
            (Some(zone), None, _) => {
                let calendar = Calendar::new(period(&window)?, &zone);
                let calendar = calendar.map_err(|error| error.to_string())?;
                (calendar.window(), Counting::Calendar(calendar))
            }
            (None, Some(algorithm), burst) => {
                let burst = burst.and_then(NonZeroU64::new);
                (text::parse_window(&window)?, Counting::Algorithm { algorithm, burst })
            }
            (None, None, _) => (text::parse_window(&window)?, Counting::Profile),
        };
        if window.is_endless() && counting != Counting::Profile {
            return Err("algorithm: not allowed with a window of `total`; remove it".into());
        }
        let parts = LimitParts { dimension, amount, window, counting, debt, whole };
        Ok(Self(seam::limit_of(parts)))
    }
}

fn period(name: &str) -> Result<Period, String> {
    match name {
        "day" => Ok(Period::Day),
        "week" => Ok(Period::Week),
        "month" => Ok(Period::Month),
        _ => Err(format!("window: unknown period `{name}`; with `zone`, use day, week or month")),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
