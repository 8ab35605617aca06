use super::family::{Family, Row};
use super::per::Per;
use super::reset;
use crate::quota::Dimension;

/// OpenAI. Its pages limit requests per minute or per day, and the headers have one name for both; the
/// numbers tell which, for recorded ones satisfy reset = used / limit x window to the millisecond
/// (<https://platform.openai.com/docs/guides/rate-limits>). `project-tokens` is a limit of the project's own beside the model's tokens, so it is a
/// dimension of its own, as images are: `Custom("project_tokens")`, `Custom("input_images")`.
pub(in crate::provider) const OPENAI: Family = Family {
    rows: &[&[
        Row::new("requests", || Dimension::Requests, Per::BucketOfMinuteOrDay),
        Row::new("tokens", || Dimension::Tokens, Per::BucketOfMinuteOrDay),
        Row::new("input-images", || Dimension::custom("input_images"), Per::BucketOfMinuteOrDay),
        Row::new(
            "project-tokens",
            || Dimension::custom("project_tokens"),
            Per::BucketOfMinuteOrDay,
        ),
    ]],
    ..RATELIMIT
};

/// Azure OpenAI: `renewalperiod` is the window, and what remains may be less than nothing.
pub(in crate::provider) const AZURE: Family = Family {
    rows: &[&[
        Row::new("requests", || Dimension::Requests, Per::Renewal),
        Row::new("tokens", || Dimension::Tokens, Per::Renewal),
    ]],
    reset: reset::azure,
    overdraws: true,
    ..RATELIMIT
};

/// Anthropic: per minute; what remains of tokens is rounded to thousands.
pub(in crate::provider) const ANTHROPIC: Family = Family {
    prefixes: &["anthropic-ratelimit-"],
    rows: &[&[
        Row::new("requests", || Dimension::Requests, MINUTE),
        Row::new("tokens", || Dimension::Tokens, MINUTE).rounded(1_000),
        Row::new("input-tokens", || Dimension::InputTokens, MINUTE).rounded(1_000),
        Row::new("output-tokens", || Dimension::OutputTokens, MINUTE).rounded(1_000),
    ]],
    ..RATELIMIT
};

/// Groq: OpenAI's names, but requests are per day.
pub(in crate::provider) const GROQ: Family = Family {
    rows: &[&[
        Row::new("requests", || Dimension::Requests, DAY),
        Row::new("tokens", || Dimension::Tokens, MINUTE),
    ]],
    ..RATELIMIT
};

/// Together: no name, per second.
pub(in crate::provider) const TOGETHER: Family =
    Family { rows: &[&[Row::new("", || Dimension::Requests, SECOND)]], ..RATELIMIT };

/// OpenRouter's own refusals: 20 requests a minute, or so many a UTC day; there are no other windows
/// (<https://openrouter.ai/docs/api-reference/limits>).
pub(in crate::provider) const OPENROUTER: Family =
    Family { rows: &[&[Row::new("", || Dimension::Requests, Per::EndOfMinuteOrDay)]], ..RATELIMIT };

/// Names that state the window: Mistral, Cerebras, SambaNova (whose plain ones are per minute).
pub(in crate::provider) const BY_NAME: Family = Family {
    rows: &[
        &[
            Row::new("requests", || Dimension::Requests, MINUTE),
            Row::new("tokens", || Dimension::Tokens, MINUTE),
        ],
        WINDOW_IN_NAME,
    ],
    ..RATELIMIT
};

/// A server of which nothing is known: whatever of the above it writes. A limit is per minute unless
/// its name states another window: the size of a reset tells nothing.
pub(in crate::provider) const COMPATIBLE: Family = Family {
    prefixes: &["x-ratelimit-", "ratelimit-"],
    rows: &[
        &[
            Row::new("requests", || Dimension::Requests, MINUTE),
            Row::new("tokens", || Dimension::Tokens, MINUTE),
            Row::new("tokens-prompt", || Dimension::InputTokens, MINUTE),
            Row::new("tokens-generated", || Dimension::OutputTokens, MINUTE),
            Row::new("", || Dimension::Requests, MINUTE),
        ],
        WINDOW_IN_NAME,
    ],
    ..RATELIMIT
};

const WINDOW_IN_NAME: &[Row] = &[
    Row::new("req-second", || Dimension::Requests, SECOND),
    Row::new("req-10-second", || Dimension::Requests, TEN_SECONDS),
    Row::new("req-minute", || Dimension::Requests, MINUTE),
    Row::new("req-day", || Dimension::Requests, DAY),
    Row::new("req-month", || Dimension::Requests, MONTH),
    Row::new("requests-second", || Dimension::Requests, SECOND),
    Row::new("requests-minute", || Dimension::Requests, MINUTE),
    Row::new("requests-hour", || Dimension::Requests, HOUR),
    Row::new("requests-day", || Dimension::Requests, DAY),
    Row::new("tokens-second", || Dimension::Tokens, SECOND),
    Row::new("tokens-minute", || Dimension::Tokens, MINUTE),
    Row::new("tokens-hour", || Dimension::Tokens, HOUR),
    Row::new("tokens-day", || Dimension::Tokens, DAY),
    Row::new("tokens-month", || Dimension::Tokens, MONTH),
];

const RATELIMIT: Family =
    Family { prefixes: &["x-ratelimit-"], rows: &[], reset: reset::any, overdraws: false };

const SECOND: Per = Per::Seconds(1);
const TEN_SECONDS: Per = Per::Seconds(10);
const MINUTE: Per = Per::Seconds(60);
const HOUR: Per = Per::Seconds(3_600);
const DAY: Per = Per::Seconds(86_400);
const MONTH: Per = Per::Seconds(30 * 86_400);

impl Row {
    const fn new(name: &'static str, dimension: fn() -> Dimension, per: Per) -> Self {
        Self { name, dimension, per, granularity: 1 }
    }

    const fn rounded(self, granularity: u64) -> Self {
        Self { granularity, ..self }
    }
}
