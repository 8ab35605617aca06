use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::text;
use crate::limiter::{NamedQuota, QuotaOrigin};
use crate::quota::{Algorithm, Calendar, Dimension, Limit, Period, Quota};

/// A quota as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    origin: Origin,
    #[serde(default, skip_serializing_if = "is_false")]
    shared: bool,
    limits: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Configured,
    Set,
    Learned,
}

/// A limit, parsed and spelt by way of its [`Fields`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Fields", try_from = "Fields")]
struct Part(Limit);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(with = "text::dimension")]
    dimension: Dimension,
    limit: u64,
    /// A length, or with a zone `day`, `week` or `month`.
    window: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    algorithm: Option<Counting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<NonZeroU64>,
    #[serde(default, skip_serializing_if = "is_false")]
    debt: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Counting {
    TokenBucket,
    SlidingWindow,
    FixedWindow,
    ClockWindow,
}

impl Written {
    pub(super) fn named(&self, name: &str) -> NamedQuota {
        let quota =
            self.limits.iter().fold(Quota::new(), |quota, part| quota.limit(part.0.clone()));
        let quota = if self.shared { quota.shared() } else { quota };
        let origin = match self.origin {
            Origin::Configured => QuotaOrigin::Configured,
            Origin::Set => QuotaOrigin::Set,
            Origin::Learned => QuotaOrigin::Learned,
        };
        NamedQuota::new(name, quota, origin)
    }
}

impl From<&NamedQuota> for Written {
    fn from(named: &NamedQuota) -> Self {
        let origin = match named.origin {
            QuotaOrigin::Configured => Origin::Configured,
            QuotaOrigin::Set => Origin::Set,
            QuotaOrigin::Learned => Origin::Learned,
        };
        let limits = named.quota.limits().iter().cloned().map(Part).collect();
        Self { origin, shared: named.quota.is_shared(), limits }
    }
}

impl From<Part> for Fields {
    fn from(Part(limit): Part) -> Self {
        let (algorithm, burst) = limit.algorithm().map(spell).unzip();
        let zone = limit.calendar().map(|calendar| calendar.zone().to_owned());
        let window = match limit.calendar() {
            Some(calendar) => name(calendar.period()).to_owned(),
            None => text::spell(limit.window()),
        };
        Self {
            dimension: limit.dimension().clone(),
            limit: limit.amount(),
            window,
            zone,
            algorithm,
            burst: burst.flatten(),
            debt: limit.has_debt(),
        }
    }
}

impl TryFrom<Fields> for Part {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        let zero = "limit: must be at least 1; omit the entry for no limit";
        let limit = match &fields.zone {
            Some(zone) => {
                let period = period(&fields.window)?;
                let calendar = Calendar::new(period, zone).map_err(|error| error.to_string())?;
                Limit::on_calendar(fields.dimension.clone(), fields.limit, &calendar)
            }
            None => {
                let window = text::read(&fields.window)?;
                Limit::new(fields.dimension.clone(), fields.limit, window)
            }
        };
        let limit = limit.ok_or(zero)?;
        let limit = match fields.algorithm()? {
            Some(algorithm) => limit.with_algorithm(algorithm),
            None => limit,
        };
        Ok(Self(if fields.debt { limit.with_debt() } else { limit }))
    }
}

impl Fields {
    fn algorithm(&self) -> Result<Option<Algorithm>, String> {
        match (self.algorithm, self.burst) {
            (Some(_), _) if self.zone.is_some() => {
                Err("algorithm: not allowed with `zone`; remove one of them".into())
            }
            (Some(Counting::TokenBucket), burst) => Ok(Some(Algorithm::TokenBucket { burst })),
            (_, Some(_)) => Err("burst: only allowed with `algorithm: token_bucket`".into()),
            (Some(Counting::SlidingWindow), _) => Ok(Some(Algorithm::SlidingWindow)),
            (Some(Counting::FixedWindow), _) => Ok(Some(Algorithm::FixedWindow)),
            (Some(Counting::ClockWindow), _) => Ok(Some(Algorithm::ClockWindow)),
            (None, None) => Ok(None),
        }
    }
}

fn spell(algorithm: Algorithm) -> (Counting, Option<NonZeroU64>) {
    match algorithm {
        Algorithm::TokenBucket { burst } => (Counting::TokenBucket, burst),
        Algorithm::SlidingWindow => (Counting::SlidingWindow, None),
        Algorithm::FixedWindow => (Counting::FixedWindow, None),
        Algorithm::ClockWindow => (Counting::ClockWindow, None),
    }
}

fn name(period: Period) -> &'static str {
    match period {
        Period::Day => "day",
        Period::Week => "week",
        Period::Month => "month",
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
