use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window::WindowText;
use crate::quota::Algorithm;

/// One limit in full.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limit")]
pub(in crate::config) struct LimitFields {
    /// What is counted: `requests`, `tokens` (as the provider counts them), `input_tokens`,
    /// `output_tokens`, `concurrency` (requests in flight), or a name of your own.
    #[schemars(extend("examples" = ["requests", "tokens", "input_tokens", "output_tokens", "concurrency"]), length(min = 1))]
    pub(in crate::config) dimension: String,

    /// How much of it is allowed in a window; 0 is no limit.
    pub(in crate::config) limit: u64,

    /// The window: a length of time from 1ms to 366d, or with `zone` a `day`, `week` or `month` of the
    /// calendar. For `concurrency` there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) window: Option<WindowText>,

    /// How it is counted over time. Default: as the provider does, else `sliding_window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) algorithm: Option<Algorithm>,

    /// What a full token bucket holds. Default: `limit`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) burst: Option<u64>,

    /// The time zone of the calendar's days, weeks (from Monday) or months, by its IANA name.
    #[schemars(extend("examples" = ["UTC", "America/Los_Angeles"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) zone: Option<String>,

    /// Lets in a request above the limit when nothing is used, which then goes into debt. Default:
    /// false: it is refused for good.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(in crate::config) debt: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}
