//! Headers that state the used part of an account's windows, as subscriptions have them.

use std::time::Duration;

use http::HeaderMap;
use paceline_limiter::Timestamp;
use paceline_limiter::limiter::UtilizationReading;

use crate::{date, duration};

/// The response headers in which a provider states the used part of an account's windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UtilizationHeaders {
    /// Anthropic's subscriptions: `anthropic-ratelimit-unified-5h-utilization: 0.42`, a part of 1, with
    /// `-5h-reset` in seconds since the Unix epoch, or in RFC 3339. Windows are `5h`, `7d` and those of some
    /// models (`7d_oi`). Anthropic's pages don't state them; source: responses in
    /// github.com/anthropics/claude-code/issues/12829 and github.com/anomalyco/opencode/issues/49653, read in
    /// November 2026.
    AnthropicUnified,
    /// ChatGPT's subscriptions: `x-codex-primary-used-percent: 12.5`, with `-primary-window-minutes` and
    /// `-primary-reset-at` in seconds since the Unix epoch (earlier `-primary-reset-after-seconds`); also
    /// `secondary`, and other limits under `x-codex-NAME-primary-...`. Source:
    /// github.com/openai/codex, codex-rs/codex-api/src/rate_limits.rs, read in November 2026. Its event
    /// `codex.rate_limits` has the same numbers in a WebSocket, which the layers don't read; its client reads none in
    /// server-sent events (`src/sse/responses.rs` there).
    Codex,
}

impl UtilizationHeaders {
    /// Returns the windows that the headers state, in the order of their names. Resets that are times are
    /// measured from the response's `date`; without one from `now`.
    pub(crate) fn read(self, headers: &HeaderMap, now: Timestamp) -> Vec<UtilizationReading> {
        let (prefix, suffix, whole) = match self {
            Self::AnthropicUnified => ("anthropic-ratelimit-unified-", "-utilization", 1.0),
            Self::Codex => ("x-codex-", "-used-percent", 100.0),
        };
        let windows = headers.keys().filter_map(|name| {
            let window = name.as_str().strip_prefix(prefix)?.strip_suffix(suffix)?;
            let part = |part: &str| text(headers, &format!("{prefix}{window}-{part}"));
            let used: f64 = text(headers, name.as_str())?.parse().ok()?;
            let used = Some(used / whole).filter(|used| (0.0..=MOST).contains(used))?;
            let at = date::of_response(headers).unwrap_or(now);
            Some(match self {
                // Extra usage beyond the subscription isn't a window.
                Self::AnthropicUnified if window == "overage" => return None,
                Self::AnthropicUnified => {
                    let reset = part("reset").and_then(|text| until(text, at));
                    UtilizationReading::new(window, used).with_reset(reset)
                }
                Self::Codex => codex(window, used, at, part)?,
            })
        });
        let mut windows: Vec<_> = windows.collect();
        windows.sort_by(|a, b| a.window.cmp(&b.window));
        windows
    }
}

/// Returns the reading of `primary`, `secondary`, or one of them after the name of another limit.
fn codex<'h>(
    name: &str,
    used: f64,
    at: Timestamp,
    part: impl Fn(&str) -> Option<&'h str>,
) -> Option<UtilizationReading> {
    let (limit, place) = name.rsplit_once('-').map_or(("", name), |(limit, place)| (limit, place));
    let minutes: Option<u64> = part("window-minutes").and_then(|text| text.parse().ok());
    let reset = part("reset-at").and_then(|text| until(text, at));
    let reset = reset.or_else(|| {
        duration::seconds(part("reset-after-seconds")?).filter(|reset| *reset <= LONGEST)
    });
    // The provider's own client ignores such windows.
    if used == 0.0 && minutes.unwrap_or(0) == 0 && reset.is_none() {
        return None;
    }
    let window = match minutes.unwrap_or(0) {
        0 => place.to_owned(),
        minutes if minutes.is_multiple_of(1_440) => format!("{}d", minutes / 1_440),
        minutes if minutes.is_multiple_of(60) => format!("{}h", minutes / 60),
        minutes => format!("{minutes}m"),
    };
    let window = if limit.is_empty() { window } else { format!("{window}_{limit}") };
    Some(UtilizationReading::new(window, used).with_reset(reset))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Returns the time until a reset in seconds since the Unix epoch or in RFC 3339.
fn until(text: &str, at: Timestamp) -> Option<Duration> {
    let reset = date::epoch(text).or_else(|| date::rfc3339(text))?;
    Some(reset - at).filter(|reset| *reset <= LONGEST)
}

/// A hundred times a window; a higher number is no utilization.
const MOST: f64 = 100.0;

/// The longest plausible time until a reset, of a window of a month.
const LONGEST: Duration = Duration::from_secs(32 * 86_400);
