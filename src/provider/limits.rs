use std::time::Duration;

use http::HeaderMap;
use smallvec::SmallVec;

use crate::quota::{Dimension, Window};

/// What the headers of one response say of one limit. What they leave out, or write as -1 or as
/// garbage, is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitReading {
    /// What is limited.
    pub dimension: Dimension,
    /// The window that the limit speaks of.
    pub window: Window,
    /// How much is allowed per window.
    pub limit: Option<u64>,
    /// How much of it the provider says is left.
    pub remaining: Option<u64>,
    /// How long until the limit is *full* again. Waiting for it wastes quota.
    pub reset: Option<Duration>,
}

/// The readings of one response: one for each limit, none allocated.
pub type LimitReadings = SmallVec<[LimitReading; 2]>;

/// Reads `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`.
pub(super) fn read(headers: &HeaderMap, reset: fn(&str) -> Option<Duration>) -> LimitReadings {
    NAMES.iter().filter_map(|names| one(headers, names, reset)).collect()
}

fn one(
    headers: &HeaderMap,
    names: &Names,
    reset: fn(&str) -> Option<Duration>,
) -> Option<LimitReading> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    // A limit of zero is how an unknown one is written; then what remains is unknown too.
    let limit = number(names.limit).filter(|limit| *limit > 0);
    let remaining = number(names.remaining).filter(|left| *left > 0 || limit.is_some());
    let reset = text(names.reset).and_then(reset);
    if limit.is_none() && remaining.is_none() {
        return None;
    }
    let window = window(limit, remaining, reset);
    Some(LimitReading { dimension: names.dimension.clone(), window, limit, remaining, reset })
}

/// The names do not say per what: but a bucket of the whole amount that refills all the time is full
/// again after used / limit x window, so the window is reset x limit / used. A day or a minute; a
/// minute where it can't be told.
fn window(limit: Option<u64>, remaining: Option<u64>, reset: Option<Duration>) -> Window {
    let implied = || {
        let (limit, remaining, reset) = (limit?, remaining?, reset?);
        let used = limit.checked_sub(remaining).filter(|used| *used > 0)?;
        Some(reset.as_nanos().saturating_mul(limit.into()) / u128::from(used))
    };
    match implied() {
        Some(nanos) if nanos > Window::HOUR.as_nanos().into() => Window::DAY,
        _ => Window::MINUTE,
    }
}

struct Names {
    dimension: Dimension,
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
}

const NAMES: &[Names] = &[
    Names {
        dimension: Dimension::Requests,
        limit: "x-ratelimit-limit-requests",
        remaining: "x-ratelimit-remaining-requests",
        reset: "x-ratelimit-reset-requests",
    },
    Names {
        dimension: Dimension::Tokens,
        limit: "x-ratelimit-limit-tokens",
        remaining: "x-ratelimit-remaining-tokens",
        reset: "x-ratelimit-reset-tokens",
    },
];
