use paceline_limiter::quota::{Algorithm, Usd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::human_duration::HumanDuration;
use super::limit::{LimitFields, is_false};
use super::margin::MarginFields;

/// The limits of one key, or of each key that a glob or a regular expression matches. A limit that is
/// 0 or missing doesn't restrict anything.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Quota")]
pub(crate) struct QuotaFields {
    /// Requests per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rpm: Option<u64>,
    /// Tokens per minute, as the provider counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tpm: Option<u64>,
    /// Requests per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rpd: Option<u64>,
    /// Tokens per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tpd: Option<u64>,
    /// Input tokens per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) itpm: Option<u64>,
    /// Output tokens per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) otpm: Option<u64>,
    /// Dollars per day of UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Amount>")]
    pub(crate) usd_per_day: Option<Usd>,
    /// Dollars per month of UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Amount>")]
    pub(crate) usd_per_month: Option<Usd>,
    /// Dollars in all: never resets. A `store` keeps what is used; not with `cluster`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Amount>")]
    pub(crate) usd_total: Option<Usd>,
    /// Tokens in all, as the provider counts them: never resets. A `store` keeps what is used; not with `cluster`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_total: Option<u64>,
    /// Requests in all: never resets. A `store` keeps what is used; not with `cluster`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests_total: Option<u64>,
    /// Requests in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency: Option<u64>,
    /// Other limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<LimitFields>,
    /// The algorithm of limits without their own algorithm. Default: for a model the provider's algorithm, else
    /// `sliding_window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) algorithm: Option<Algorithm>,
    /// The share of these limits that this program uses: above 0, at most 1 (default).
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share: Option<f64>,
    /// The margin of these limits, in place of `margin` of the file. Use `{percent: 0, lag: 0s}` for
    /// limits that protect your own server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) margin: Option<MarginFields>,
    /// The weight of the keys where `waiting.fair_by` shares another key's limits between them: a key with
    /// weight 2 gets twice the service of one with weight 1. Default: 1.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<u32>,
    /// The part of the account's windows, such as 5 hours and 7 days of a subscription, to which requests are held:
    /// once the provider states that this part of one is used, requests wait until it starts again. Above 0, at
    /// most 1. Default: windows are shown, and nothing waits for them.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) utilization: Option<f64>,
    /// The maximum time that a request waits for these limits, in addition to `waiting.max_wait`; a request that
    /// would have to wait longer for them is refused immediately, whatever other keys it waits for. Default: no other
    /// bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_wait: Option<HumanDuration>,
    /// The handling of a request that these limits don't admit immediately: `wait` (default), or `reject`, the same
    /// as `max_wait: 0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<QuotaMode>,
    /// Shares one set of buckets among all matching keys, such as a family of models with one pool.
    /// Default: false: each key has its own buckets.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) shared: bool,
    /// Treats the name as a regular expression that must match the whole key. Default: false.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) regex: bool,
}

/// The handling of a request that the limits of a quota don't admit immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuotaMode {
    /// The request waits.
    Wait,
    /// The request is refused, with the time to retry.
    Reject,
}
