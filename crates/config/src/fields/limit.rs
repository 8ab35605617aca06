use paceline_limiter::quota::Algorithm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::window::WindowText;

/// A limit with a window or an algorithm of its own.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limit")]
pub(crate) struct LimitFields {
    /// The dimension that is counted: `requests`, `tokens` (as the provider counts them),
    /// `input_tokens`, `output_tokens`, `concurrency` (requests in flight), `usd` (money), `images`,
    /// `audio_seconds` or `inputs` (of embeddings) where the provider limits them, or a custom name.
    #[schemars(extend("examples" = ["requests", "tokens", "input_tokens", "output_tokens", "concurrency", "usd", "images", "audio_seconds", "inputs"]), length(min = 1))]
    pub(crate) dimension: String,

    /// The amount per window; 0 is no limit. For `usd`: dollars, with up to six decimals.
    pub(crate) limit: Amount,

    /// The window: a duration from 1ms to 366d, with `zone` a `day`, `week` or `month` of the calendar, or
    /// `total` for a limit that never resets. Not allowed for `concurrency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<WindowText>,

    /// The algorithm. Default: for a model the provider's algorithm, else `sliding_window`; also for `usd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) algorithm: Option<Algorithm>,

    /// The capacity of the token bucket. Default: `limit`.
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) burst: Option<Amount>,

    /// The IANA name of the time zone of the calendar. Weeks start on Monday.
    #[schemars(extend("examples" = ["UTC", "America/Los_Angeles"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<String>,

    /// Admits a request that is larger than the limit once nothing is used; the limit is in debt after
    /// that. Default: false: the request is refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) debt: bool,

    /// The whole limit, if `limit` is only a part of it: a request above the part, but not above the whole, is
    /// admitted once nothing of the part is used. `share` of a quota sets it. Default: such a request is refused.
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) whole: Option<Amount>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}
