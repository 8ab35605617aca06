//! The limit that a refusal names: its dimension, its window and its amounts.

use std::time::Duration;

use paceline_limiter::quota::Dimension;

use super::words::Words;
use crate::duration;

/// The amounts that a message states.
#[derive(Debug, Default)]
pub(super) struct Amounts {
    pub(super) limit: Option<u64>,
    pub(super) used: Option<u64>,
    pub(super) requested: Option<u64>,
}

impl Amounts {
    /// Reads amounts after the words that name them: `Limit 10000, Used 8782, Requested 8172`.
    pub(super) fn read(words: &Words) -> Self {
        let words = words.list();
        let mut amounts = Self::default();
        for (at, word) in words.iter().enumerate() {
            let number = || number_after(&words[at + 1..]);
            // `(actual/limit): 481/480`.
            if words[at..].starts_with(&["actual", "per", "limit"]) {
                let pair: Vec<_> =
                    words[at + 3..].iter().take(3).filter_map(|word| number_of(word)).collect();
                if let [used, limit] = pair[..] {
                    return Self { limit: Some(limit), used: Some(used), requested: None };
                }
            }
            let before = at.checked_sub(1).map_or("", |before| words[before]);
            // `180000 + 32000 > 200000`.
            if *word == "exceeds"
                && let (Some(_), Some(limit)) = (number_of(before), number())
            {
                let summands = words[..at].iter().rev().map_while(|word| number_of(word));
                if summands.clone().count() > 1 {
                    let requested = Some(summands.fold(0, u64::saturating_add));
                    return Self { limit: Some(limit), used: None, requested };
                }
            }
            let is_number_next = words.get(at + 1).is_some_and(|next| number_of(next).is_some());
            let amount = match *word {
                "length" if before == "current" => continue,
                "count" if !matches!(before, "token" | "tokens") => continue,
                "tpm" | "rpm" | "tpd" | "rpd" if before == "current" || !is_number_next => continue,
                "tpm" | "rpm" | "tpd" | "rpd" | "limit" | "limits" | "limited" | "max"
                | "maximum" | "quota" | "length" | "concurrency" | "allowed" => &mut amounts.limit,
                "used" | "current" | "usage" => &mut amounts.used,
                "requested" | "needs" | "contains" | "long" | "count" => &mut amounts.requested,
                _ => {
                    if let Some(number) = number_of(word).filter(|_| is_limit(&words[at + 1..])) {
                        amounts.limit.get_or_insert(number);
                    }
                    continue;
                }
            };
            if amount.is_none() {
                *amount = number();
            }
        }
        amounts
    }

    /// Returns true if the request alone is more than the limit.
    pub(super) fn never_fits(&self) -> bool {
        self.limit.zip(self.requested).is_some_and(|(limit, requested)| requested > limit)
    }
}

/// Returns true if these words after a number show that it is a limit: `40000 input tokens per minute`, `3 RPM`.
fn is_limit(words: &[&str]) -> bool {
    let kind = words
        .first()
        .is_some_and(|word| matches!(*word, "input" | "output" | "prompt" | "api" | "total"));
    let mut words = words[usize::from(kind)..].iter();
    match words.next() {
        Some(&("maximum" | "rpm" | "tpm" | "rpd" | "tpd")) => true,
        Some(&("token" | "tokens" | "request" | "requests" | "queries" | "calls" | "images")) => {
            words.next() == Some(&"per")
        }
        _ => false,
    }
}

/// Returns the next number, after a few words that may be between it and its name. Numbers with a unit of time are
/// no amounts.
fn number_after(words: &[&str]) -> Option<u64> {
    for (at, word) in words.iter().enumerate().take(MAX_BETWEEN + 1) {
        if let Some(number) = number_of(word) {
            let next = words.get(at + 1).copied().unwrap_or_default();
            let is_time = duration::unit_seconds(next).is_some();
            return Some(number).filter(|_| !is_time);
        }
        if !BETWEEN.contains(word) {
            return None;
        }
    }
    None
}

/// Returns the number that a word is: `30000`, `6.0`, `10k`, `1m`.
fn number_of(word: &str) -> Option<u64> {
    let (digits, factor) = match word.strip_suffix('k') {
        Some(digits) => (digits, 1_000.0),
        None => word.strip_suffix('m').map_or((word, 1.0), |digits| (digits, 1_000_000.0)),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = digits.parse().ok().filter(|_| is_number)?;
    // Saturates. A part of a unit is no amount.
    Some((number * factor) as u64).filter(|amount| *amount > 0 || number == 0.0)
}

/// Returns the dimension that codes and messages name.
pub(super) fn dimension(codes: &Words, text: &Words) -> Option<Dimension> {
    // The reason phrase of the status names nothing.
    let text = Some(text).filter(|text| !text.is("too many requests"));
    let texts = || [Some(codes), text].into_iter().flatten();
    let find = |(rule, dimension): &(&str, Dimension)| {
        texts().any(|words| words.has(&[rule])).then(|| dimension.clone())
    };
    if codes.has(&["input images"]) {
        return Some(Dimension::custom("input_images"));
    }
    NAMED
        .iter()
        .find_map(find)
        .or_else(|| by_window(codes))
        .or_else(|| text.and_then(by_window))
        .or_else(|| {
            let found = IMPLIED
                .iter()
                .filter(|(rule, _)| codes.has(&[rule]))
                .map(|(_, d)| d.clone())
                .next();
            found.or_else(|| IMPLIED.iter().find_map(find))
        })
}

/// Returns the dimension of the first limit that is named with its window: `tokens per minute`, `RPM`.
fn by_window(words: &Words) -> Option<Dimension> {
    let words = words.list();
    words.iter().enumerate().find_map(|(at, word)| {
        let next = || words[at + 1..].iter().take(3).take_while(|word| !word.is_empty());
        let has_window = || next().any(|word| matches!(*word, "per" | "by"));
        match *word {
            "tpm" | "tpd" | "tph" => Some(Dimension::Tokens),
            "rpm" | "rpd" | "rps" | "rph" | "qpm" => Some(Dimension::Requests),
            "token" | "tokens" if has_window() => Some(Dimension::Tokens),
            "request" | "requests" | "calls" | "queries" if has_window() => {
                Some(Dimension::Requests)
            }
            _ => None,
        }
    })
}

/// Returns the length of the window that is named first, or of the longest one if `longest` is set.
pub(super) fn window(words: &Words, longest: bool) -> Option<Duration> {
    // The sentence that names the limit counts before others.
    let words = if longest { words.list() } else { words.first(REACHED) };
    let before = |at: usize| at.checked_sub(1).map_or("", |before| words[before]);
    let mut windows = words.iter().enumerate().filter_map(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let after = words.get(at + 2).copied().unwrap_or_default();
        let seconds = match *word {
            "per" | "by" | "every" | "each" => in_words(next, after)?,
            "a" | "an" if is_counted(before(at)) => in_words(next, after)?,
            "hour" | "day" | "week" | "month"
                if matches!(next, "limit" | "limits" | "quota" | "allocated")
                    && !matches!(before(at), "last" | "next") =>
            {
                in_words(word, "")?
            }
            "rps" => 1.0,
            "tpm" | "rpm" | "itpm" | "otpm" | "qpm" => 60.0,
            "tph" | "rph" | "ash" | "hourly" => HOUR,
            "tpd" | "rpd" | "asd" | "daily" => 24.0 * HOUR,
            "weekly" => 7.0 * 24.0 * HOUR,
            "monthly" => 30.0 * 24.0 * HOUR,
            // "5-hour usage limit", "usage limit reached for 5 hour".
            _ if matches!(next, "hour" | "hours" | "hr" | "hrs" | "day" | "days")
                && is_of_limit(&words, at) =>
            {
                let number = number_of(word).or_else(|| {
                    NUMBERS.iter().position(|name| name == word).map(|number| number as u64 + 1)
                });
                number? as f64 * duration::unit_seconds(next)?
            }
            // "5h limit", "200 requests in 24h".
            _ if word.ends_with(['h', 'd']) && is_of_limit(&words, at) => {
                duration::stated(word)?.as_secs_f64()
            }
            _ => return None,
        };
        Duration::try_from_secs_f64(seconds).ok().filter(|window| !window.is_zero())
    });
    if longest { windows.max() } else { windows.next() }
}

/// Returns true if the number of hours there is the length of a limit's window, not a delay.
fn is_of_limit(words: &[&str], at: usize) -> bool {
    let is_limit = |word: &&str| matches!(*word, "limit" | "limits" | "quota" | "usage" | "window");
    let before =
        at.checked_sub(1).and_then(|before| words.get(before)).copied().unwrap_or_default();
    let counted = at.checked_sub(2).map_or("", |before| words[before]);
    if matches!(before, "last" | "past" | "rolling") || before == "in" && is_counted(counted) {
        return true;
    }
    let is_delay = matches!(before, "in" | "after" | "wait" | "another");
    !is_delay
        && (words[at..].iter().take(4).any(is_limit)
            || words[..at].iter().rev().take(4).any(is_limit))
}

/// Returns true for what a limit counts.
fn is_counted(word: &str) -> bool {
    matches!(word, "request" | "requests" | "tokens" | "messages" | "calls" | "queries" | "images")
}

/// Returns the seconds of `minute`, `60 s` or `60s`.
fn in_words(word: &str, next: &str) -> Option<f64> {
    match word {
        "month" => return Some(30.0 * 24.0 * HOUR),
        "hour" | "hr" | "minute" | "min" | "second" | "sec" | "day" | "week" => {
            return duration::unit_seconds(word);
        }
        _ => {}
    }
    let apart = || Some(number_of(word)? as f64 * duration::unit_seconds(next)?);
    let joined = || duration::stated(word).map(|duration| duration.as_secs_f64());
    joined().or_else(apart)
}

const HOUR: f64 = 3_600.0;

const NUMBERS: &[&str] = &[
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// Words of a sentence that says which limit refuses.
const REACHED: &[&str] = &["exceeded|reached|hit|exhausted|used up"];

/// Words between the name of an amount and the amount.
const BETWEEN: &[&str] = &[
    "is",
    "of",
    "to",
    "for",
    "at",
    "up",
    "rpm",
    "tpm",
    "rpd",
    "tpd",
    "concurrency",
    "length",
    "size",
    "tokens",
    "value",
    "about",
    "only",
    "your",
];

/// The most of them.
const MAX_BETWEEN: usize = 3;

/// Dimensions that are named by their own words.
const NAMED: &[(&str, Dimension)] = &[
    (
        "concurren*|in flight|simultaneous|parallel requests|parallel request|conn limit|并发",
        Dimension::Concurrency,
    ),
    ("input tokens per|prompt tokens per|input token rate|itpm", Dimension::InputTokens),
    ("output tokens per|completion tokens per|output token rate|otpm", Dimension::OutputTokens),
];

/// Dimensions that are named without a window; codes count before messages.
const IMPLIED: &[(&str, Dimension)] = &[
    (
        "tokens|token rate limit|token rate|token limit|too many tokens|token quota|allocated quota|\
         token count",
        Dimension::Tokens,
    ),
    (
        "requests|call rate limit|request rate|too many requests|request limit|request quota|requests list|queries",
        Dimension::Requests,
    ),
];
