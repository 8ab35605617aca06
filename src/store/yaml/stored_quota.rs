use serde::{Deserialize, Serialize};

use super::text;
use crate::limiter::{NamedQuota, QuotaOrigin};
use crate::quota::{Algorithm, Calendar, Dimension, Limit, Margin, Period, Quota};

/// The stored form of a quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredQuota {
    origin: StoredOrigin,
    #[serde(default, skip_serializing_if = "is_false")]
    shared: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    margin: Option<Margin>,
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
    /// A duration; with a zone, `day`, `week` or `month`.
    window: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    algorithm: Option<Algorithm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    debt: bool,
}

impl StoredQuota {
    pub(super) fn named(&self, name: &str) -> NamedQuota {
        let quota =
            self.limits.iter().fold(Quota::new(), |quota, limit| quota.limit(limit.0.clone()));
        let quota = if self.shared { quota.shared() } else { quota };
        let quota = match self.margin {
            Some(margin) => quota.with_margin(margin),
            None => quota,
        };
        let origin = match self.origin {
            StoredOrigin::Configured => QuotaOrigin::Configured,
            StoredOrigin::Set => QuotaOrigin::Set,
            StoredOrigin::Learned => QuotaOrigin::Learned,
        };
        NamedQuota::new(name, quota, origin)
    }
}

impl From<&NamedQuota> for StoredQuota {
    fn from(named: &NamedQuota) -> Self {
        let origin = match named.origin {
            // Read again at the next start.
            QuotaOrigin::Configured | QuotaOrigin::Provider => StoredOrigin::Configured,
            QuotaOrigin::Set => StoredOrigin::Set,
            QuotaOrigin::Learned => StoredOrigin::Learned,
        };
        let limits = named.quota.limits().iter().cloned().map(StoredLimit).collect();
        Self { origin, shared: named.quota.is_shared(), margin: named.quota.margin(), limits }
    }
}

impl From<StoredLimit> for LimitFields {
    fn from(StoredLimit(limit): StoredLimit) -> Self {
        let zone = limit.calendar().map(|calendar| calendar.zone().to_owned());
        let window = match limit.calendar() {
            Some(calendar) => calendar.period().as_str().to_owned(),
            None => text::format_window(limit.window()),
        };
        Self {
            dimension: limit.dimension().clone(),
            limit: limit.amount(),
            window,
            zone,
            algorithm: limit.algorithm(),
            burst: limit.burst(),
            debt: limit.has_debt(),
        }
    }
}

impl TryFrom<LimitFields> for StoredLimit {
    type Error = String;

    fn try_from(fields: LimitFields) -> Result<Self, String> {
        let zero = "limit: must be at least 1; omit the entry for no limit";
        let limit = match &fields.zone {
            Some(zone) => {
                let period = period(&fields.window)?;
                let calendar = Calendar::new(period, zone).map_err(|error| error.to_string())?;
                Limit::on_calendar(fields.dimension.clone(), fields.limit, &calendar)
            }
            None => {
                let window = text::parse_window(&fields.window)?;
                Limit::new(fields.dimension.clone(), fields.limit, window)
            }
        };
        let limit = limit.ok_or(zero)?;
        let limit = fields.count(limit)?;
        Ok(Self(if fields.debt { limit.with_debt() } else { limit }))
    }
}

impl LimitFields {
    /// Returns the limit, counted by the algorithm of these fields.
    fn count(&self, limit: Limit) -> Result<Limit, String> {
        match (self.algorithm, self.burst) {
            (Some(_), _) if self.zone.is_some() => {
                Err("algorithm: not allowed with `zone`; remove one of them".into())
            }
            (Some(Algorithm::TokenBucket), burst) => Ok(limit.with_burst(burst.unwrap_or(0))),
            (_, Some(_)) => Err("burst: only allowed with `algorithm: token_bucket`".into()),
            (Some(algorithm), None) => Ok(limit.with_algorithm(algorithm)),
            (None, None) => Ok(limit),
        }
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
