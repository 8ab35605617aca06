use super::limit_header::LimitHeader;
use super::limit_headers::LimitHeaders;
use super::limit_window::LimitWindow;
use super::reset_format::ResetFormat;

impl LimitHeaders {
    /// Any OpenAI-compatible server: the headers of all providers. A limit is per minute unless its
    /// name states another window; the reset doesn't indicate one.
    pub const COMPATIBLE: Self = Self::new(
        &["x-ratelimit-", "ratelimit-"],
        &[
            LimitHeader::new("requests", "requests", LimitWindow::MINUTE),
            LimitHeader::new("tokens", "tokens", LimitWindow::MINUTE),
            LimitHeader::new("tokens-prompt", "input_tokens", LimitWindow::MINUTE),
            LimitHeader::new("tokens-generated", "output_tokens", LimitWindow::MINUTE),
            LimitHeader::new("", "requests", LimitWindow::MINUTE),
        ],
    )
    .with_windows_in_names();

    /// No headers.
    pub const NONE: Self = Self::new(&[], &[]);

    /// Mistral, Cerebras, SambaNova: names that state the window; `requests` and `tokens` without one
    /// are per minute.
    pub const BY_NAME: Self = Self::new(
        PREFIX,
        &[
            LimitHeader::new("requests", "requests", LimitWindow::MINUTE),
            LimitHeader::new("tokens", "tokens", LimitWindow::MINUTE),
        ],
    )
    .with_windows_in_names();

    /// OpenAI. Requests are limited per minute or per day, under one header name; the numbers
    /// distinguish them, because in recordings reset = used / limit x window to the millisecond
    /// (<https://platform.openai.com/docs/guides/rate-limits>). `project-tokens` limits the project
    /// beside the model's tokens, so it is a custom dimension, as are images: `project_tokens`,
    /// `input_images`.
    pub const OPENAI: Self = Self::new(
        PREFIX,
        &[
            LimitHeader::new("requests", "requests", LimitWindow::MinuteOrDayByRefill),
            LimitHeader::new("tokens", "tokens", LimitWindow::MinuteOrDayByRefill),
            LimitHeader::new("input-images", "input_images", LimitWindow::MinuteOrDayByRefill),
            LimitHeader::new("project-tokens", "project_tokens", LimitWindow::MinuteOrDayByRefill),
        ],
    );

    /// Azure OpenAI: `renewalperiod` states the window, and the remainder may be negative.
    pub const AZURE: Self = Self::new(
        PREFIX,
        &[
            LimitHeader::new("requests", "requests", LimitWindow::RenewalPeriod),
            LimitHeader::new("tokens", "tokens", LimitWindow::RenewalPeriod),
        ],
    )
    .reset(ResetFormat::SecondsOrMillis)
    .overdrawn();

    /// Anthropic: per minute; the remaining tokens are rounded to thousands.
    pub const ANTHROPIC: Self = Self::new(
        &["anthropic-ratelimit-"],
        &[
            LimitHeader::new("requests", "requests", LimitWindow::MINUTE),
            LimitHeader::new("tokens", "tokens", LimitWindow::MINUTE).rounded_to(1_000),
            LimitHeader::new("input-tokens", "input_tokens", LimitWindow::MINUTE).rounded_to(1_000),
            LimitHeader::new("output-tokens", "output_tokens", LimitWindow::MINUTE)
                .rounded_to(1_000),
        ],
    );

    /// Anthropic's fast mode, whose limits are counted apart: tokens per minute
    /// (platform.claude.com/docs/en/build-with-claude/fast-mode, November 2026).
    pub const ANTHROPIC_FAST: Self = Self::new(
        &["anthropic-fast-"],
        &[
            LimitHeader::new("input-tokens", "input_tokens", LimitWindow::MINUTE).rounded_to(1_000),
            LimitHeader::new("output-tokens", "output_tokens", LimitWindow::MINUTE)
                .rounded_to(1_000),
        ],
    );

    /// Groq: requests per day, tokens per minute.
    pub const GROQ: Self = Self::new(
        PREFIX,
        &[
            LimitHeader::new("requests", "requests", LimitWindow::DAY),
            LimitHeader::new("tokens", "tokens", LimitWindow::MINUTE),
        ],
    );

    /// Together: requests per second, without a name.
    pub const TOGETHER: Self =
        Self::new(PREFIX, &[LimitHeader::new("", "requests", LimitWindow::Seconds(1))]);

    /// OpenRouter's own refusals: requests per minute or per UTC day, without a name; there are no
    /// other windows (<https://openrouter.ai/docs/api-reference/limits>).
    pub const OPENROUTER: Self =
        Self::new(PREFIX, &[LimitHeader::new("", "requests", LimitWindow::MinuteOrDayByReset)]);
}

const PREFIX: &[&str] = &["x-ratelimit-"];
