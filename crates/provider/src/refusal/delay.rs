//! Delays and times that an answer states, in headers, in members of its body, and in its words.

use std::time::Duration;

use http::HeaderMap;
use paceline_limiter::Timestamp;
use paceline_limiter::limiter::Refusal;

use super::words::Words;
use crate::utilization::UtilizationHeaders;
use crate::{date, duration};

/// A delay as it is stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stated {
    In(Duration),
    At(Timestamp),
}

impl Stated {
    /// Returns the delay from `now`: zero for a time that has passed.
    pub(super) fn delay(self, now: Timestamp) -> Duration {
        let delay = match self {
            Self::In(delay) => delay,
            Self::At(time) => time - now,
        };
        delay.min(Refusal::LONGEST)
    }

    /// Reads a value that is a delay as a whole, in this unit if it has none. A negative one is none.
    fn value(text: &str, unit_seconds: f64) -> Option<Self> {
        let text = text.trim();
        // A header that is there twice.
        let first = text.split(',').next().unwrap_or_default();
        let text = if first.parse::<f64>().is_ok() { first } else { text };
        let seconds = || {
            let number = duration::seconds(text).filter(|_| !text.starts_with('-'))?;
            Some(
                Duration::try_from_secs_f64(number.as_secs_f64() * unit_seconds)
                    .unwrap_or(Duration::MAX),
            )
        };
        date::epoch(text)
            .filter(|_| unit_seconds >= 1.0 && !text.starts_with('-'))
            .map(Self::At)
            .or_else(|| seconds().or_else(|| duration::stated(text)).map(Self::In))
            .or_else(|| date::http(text).or_else(|| date::rfc3339(text)).map(Self::At))
            .or_else(|| date::leading(text).map(Self::At))
    }
}

/// Returns the delay that the headers state: the first in the order of the official SDKs.
pub(super) fn in_headers(headers: &HeaderMap) -> Option<Stated> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    // A reset is a delay if nothing is left until then.
    let is_spent =
        || REMAINING.iter().find_map(|name| text(name)).is_none_or(|left| left.trim() == "0");
    DELAYS
        .iter()
        .find_map(|(name, unit_seconds)| Stated::value(text(name)?, *unit_seconds))
        .or_else(|| text("ratelimit").and_then(in_field))
        .or_else(|| {
            RESETS.iter().find_map(|name| Stated::value(text(name)?, 1.0)).filter(|_| is_spent())
        })
}

/// Returns the time until a policy without anything left has some again, of the field `RateLimit`: `"day";r=0;t=17`,
/// earlier `limit=100, remaining=0, reset=50`.
fn in_field(field: &str) -> Option<Stated> {
    let parameter = |item: &str, names: [&str; 2]| {
        let mut parameters = item.split([';', ',']).filter_map(|part| part.split_once('='));
        let found = parameters.find(|(name, _)| names.contains(&name.trim()));
        found.and_then(|(_, value)| value.trim().parse::<u64>().ok())
    };
    let items: Vec<&str> =
        if field.contains(';') { field.split(',').collect() } else { vec![field] };
    let spent = items.iter().filter(|item| parameter(item, ["r", "remaining"]) == Some(0));
    spent
        .filter_map(|item| parameter(item, ["t", "reset"]))
        .max()
        .map(|seconds| Stated::In(Duration::from_secs(seconds)))
}

/// Returns the time at which the last of the account's windows that are used up starts again, by headers of any
/// provider's subscriptions.
pub(super) fn of_used_up_windows(headers: &HeaderMap, now: Timestamp) -> Option<Option<Duration>> {
    let forms = [UtilizationHeaders::AnthropicUnified, UtilizationHeaders::Codex];
    let windows = forms.iter().flat_map(|form| form.read(headers, now));
    let measured = windows.filter(|window| window.used >= 1.0).map(|window| window.reset);
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let reset = |name: &str| Some(Stated::value(text(name)?, 1.0)?.delay(now));
    let is_rejected = text("anthropic-ratelimit-unified-status") == Some("rejected");
    let rejected = is_rejected.then(|| reset("anthropic-ratelimit-unified-reset"));
    let long = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str();
        let is_long = LONG_WINDOWS.iter().any(|window| name.ends_with(window));
        let is_spent = is_long && name.contains("ratelimit-remaining") && value == "0";
        is_spent.then(|| reset(&name.replace("remaining", "reset")))
    });
    measured.chain(rejected).chain(long).max()
}

/// Returns the reset of Codex's windows whose used part the headers don't state.
pub(super) fn of_unmeasured_windows(headers: &HeaderMap) -> Option<Duration> {
    let resets = headers.iter().filter_map(|(name, value)| {
        let window =
            name.as_str().strip_prefix("x-codex-")?.strip_suffix("-reset-after-seconds")?;
        let is_measured = headers.contains_key(format!("x-codex-{window}-used-percent"));
        duration::seconds(value.to_str().ok()?.trim()).filter(|_| !is_measured)
    });
    resets.max()
}

/// Returns the delays that members of a body state by their names: `retryDelay`, `resets_in_seconds`, `retry_after_ms`,
/// and one of `fields`. The last counts that is latest.
pub(super) fn in_members(members: &[(String, String)], fields: &[&str]) -> Vec<Stated> {
    members
        .iter()
        .filter_map(|(name, value)| {
            if fields.contains(&name.as_str()) {
                return Stated::value(value, 1.0);
            }
            let mut words = Words::default();
            words.add(name);
            let is_delay = words.has(&[NAMES]) && !words.has(&[OTHER_NAMES]);
            let unit_seconds = match () {
                () if words.has(&["ms|millis|milliseconds"]) => 1e-3,
                () if words.has(&["minutes|mins"]) => 60.0,
                () if words.has(&["hours"]) => 3_600.0,
                () => 1.0,
            };
            Stated::value(value, unit_seconds).filter(|_| is_delay)
        })
        .collect()
}

/// Returns the delays in a message: "try again in 6m0s", "Please wait 37221 seconds", "reset at 2026-09-04 19:01:25".
pub(super) fn in_text(text: &str) -> Vec<Stated> {
    let lower = without_separators(text).to_ascii_lowercase();
    let mut found: Vec<(usize, Stated)> = CUES
        .iter()
        .flat_map(|cue| lower.match_indices(cue).map(move |(at, _)| (at, at + cue.len())))
        .filter(|(at, end)| {
            &lower[*at..*end] == "|" || !lower[..*at].ends_with(char::is_alphanumeric)
        })
        .filter_map(|(at, end)| Some((at, after_cue(&lower[at..end], &lower[end..])?)))
        .collect();
    found.extend(in_chinese(&lower));
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, stated)| stated).collect()
}

/// Returns the delay after a word that announces one, and after a few words between them.
fn after_cue(cue: &str, text: &str) -> Option<Stated> {
    let mut rest = text.trim_start_matches(char::is_alphabetic);
    // "retrying", "resets".
    let ending = &text[..text.len() - rest.len()];
    // Nor what has been waited.
    if !matches!(ending, "" | "s" | "ing" | "ting" | "ed" | "es")
        || cue == "wait" && matches!(ending, "ing" | "ed")
    {
        return None;
    }
    for _ in 0..=MAX_BETWEEN {
        rest = rest.trim_start_matches([' ', ':', '~', '=', '"', '(', '\'', '*', '_', '\n', '<']);
        if let Some((delay, _)) = duration::leading(rest) {
            return Some(Stated::In(delay));
        }
        if let Some(time) = date::leading(rest) {
            return Some(Stated::At(time));
        }
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            return bare_number(cue, rest);
        }
        let end = rest.find(|c: char| !(c.is_alphabetic() || c == '-')).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_long = matches!(cue, "wait" | "cooldown" | "blocked" | "limited")
            && matches!(word, "for" | "active");
        if !BETWEEN.contains(&word) && !is_long {
            return None;
        }
        rest = after;
    }
    None
}

/// Removes the commas in numbers, and `more` after them: `37,221 seconds`, `5 more seconds`.
fn without_separators(text: &str) -> String {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut before = None;
    let mut chars = text.chars().peekable();
    let mut kept = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        if !(c == ',' && is_digit(before) && is_digit(chars.peek().copied())) {
            kept.push(c);
        }
        before = Some(c);
    }
    kept.replace(" more second", " second").replace(" more minute", " minute")
}

/// Returns the delays in Chinese: `30 秒后重试`, `1 分 30 秒后`, `将在 2026-09-04 19:01:25 重置`. Times without an offset
/// are those of China.
fn in_chinese(text: &str) -> impl Iterator<Item = (usize, Stated)> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let starts = text
        .char_indices()
        .filter(move |(at, c)| c.is_ascii_digit() && !text[..*at].ends_with(is_number));
    let delays = starts.filter_map(|(at, _)| Some((at, Stated::In(chinese(&text[at..])?))));
    let times = ["将在", "将于"].into_iter().flat_map(move |cue| {
        text.match_indices(cue).filter_map(move |(at, _)| {
            let rest = text[at + cue.len()..].trim_start();
            let time = date::leading(rest)?;
            let written: String = rest.chars().take(LONGEST_TIME).collect();
            let has_offset = written.contains(['+', 'z', 'u', 'g']);
            let offset = if has_offset { Duration::ZERO } else { CHINA };
            Some((at, Stated::At(time.saturating_sub(offset))))
        })
    });
    delays.chain(times)
}

/// Returns the duration at the start of a text that something happens after.
fn chinese(text: &str) -> Option<Duration> {
    let (mut rest, mut total, mut units) = (text, 0.0, 0);
    loop {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, after) = rest.split_at(end);
        if number.is_empty() {
            let after = rest.trim_start_matches(['之', '以']);
            let is_delay = units > 0 && after.starts_with('后');
            return Duration::try_from_secs_f64(total).ok().filter(|_| is_delay);
        }
        let after = after.trim_start().trim_start_matches('个');
        let unit = CHINESE_UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        total += number.parse::<f64>().ok()? * unit.1;
        units += 1;
        rest = after[unit.0.len()..].trim_start();
    }
}

/// Returns the seconds, or the time since the Unix epoch, of a number without a unit: `Retry-After: 30`.
fn bare_number(cue: &str, text: &str) -> Option<Stated> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let is_alone = rest.trim_start_matches(['"', '\'', '*', ')']).trim().is_empty();
    let epoch = date::epoch(number).map(Stated::At);
    epoch.or_else(|| {
        let number = duration::seconds(number.trim_end_matches('.'))?;
        (cue.starts_with("retry") && is_alone).then_some(Stated::In(number))
    })
}

/// The ends of the names of headers that state what is left of a long window: Kong's, SambaNova's.
const LONG_WINDOWS: &[&str] = &["-hour", "-day", "-week", "-month"];

/// Headers that state a delay, with the seconds of their unit.
const DELAYS: &[(&str, f64)] = &[
    ("retry-after-ms", 1e-3),
    ("x-ms-retry-after-ms", 1e-3),
    ("retry-after", 1.0),
    ("x-retry-after", 1.0),
    ("x-ratelimit-retry-after", 1.0),
    ("x-ratelimit-reset-after", 1.0),
    ("x-ai-ratelimit-retry-after", 1.0),
    ("x-ratelimit-timeremaining", 1.0),
];

/// Headers that state when a limit has something left again, and those that state what is left.
const RESETS: &[&str] = &["ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset"];
const REMAINING: &[&str] =
    &["ratelimit-remaining", "x-ratelimit-remaining", "x-rate-limit-remaining"];

/// Words in the names of members that state a delay, and in those of other members with the same words.
const NAMES: &str = "retry|reset|resets|wait|cooldown|cool down|estimated time|time remaining|try again|\
     available at|available in";
const OTHER_NAMES: &str =
    "count|counts|max|attempt|attempts|limit reset count|retries|retry limit|id|code|reason";

const CHINESE_UNITS: &[(&str, f64)] = &[
    ("秒钟", 1.0),
    ("秒", 1.0),
    ("分钟", 60.0),
    ("分", 60.0),
    ("小时", 3_600.0),
    ("天", 86_400.0),
];

/// The characters of a date, a time and its offset.
const LONGEST_TIME: usize = 28;

/// The offset of China's time from UTC.
const CHINA: Duration = Duration::from_secs(8 * 3_600);

/// Words that announce a delay, in lower case; they may go on ("resets").
const CUES: &[&str] = &[
    "try again",
    "retry",
    "retry after",
    "retry-after",
    "retry_after",
    "retry_after_seconds",
    "try your request again",
    "wait",
    "reset",
    "replenish",
    "refresh",
    "renew",
    "resume",
    "regain access",
    "available again",
    "be available",
    "available in",
    "time remaining",
    "lifted",
    "blocked",
    "limited",
    "try once more",
    "|",
    "come back",
    "back off",
    "backoff",
    "cooldown",
    "cool down",
];

/// Words between an announcement and its delay.
const BETWEEN: &[&str] = &[
    "in",
    "after",
    "at",
    "on",
    "about",
    "approximately",
    "around",
    "another",
    "again",
    "until",
    "at-least",
    "least",
    "is",
    "will",
    "be",
    "your",
    "the",
    "this",
    "it",
    "operation",
    "call",
    "next",
    "request",
    "requests",
    "to",
    "a",
    "an",
    "additional",
    "delay",
    "of",
    "up",
    "period",
    "time",
    "date",
];

/// The most words between an announcement and its delay.
const MAX_BETWEEN: usize = 4;
