use std::time::Duration;

use axum::extract::Query;
use axum::http::{StatusCode, Uri};

use tollgate::provider::duration;

/// What a request says besides its key, by its query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) can_wait: bool,
    pub(super) max_requests: Option<u32>,
    pub(super) max_in_queue: Option<u32>,
    pub(super) tokens: u64,
    pub(super) timeout: Option<Duration>,
}

/// What a request may say for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    pub(super) rate: bool,
    pub(super) queue: bool,
}

/// What is wrong with it; the texts of a status are the protocol.
pub(super) type Wrong = (StatusCode, &'static str);

impl Asked {
    /// Reads the query of this address. Values that are left empty weren't given; of several by one name
    /// the first counts.
    pub(super) fn read(uri: &Uri, allowed: Allowed) -> Result<Self, Wrong> {
        if uri.query().is_none() {
            return Ok(Self::default());
        }
        let pairs: Vec<(String, String)> = match Query::try_from_uri(uri) {
            Ok(Query(pairs)) => pairs,
            Err(_) => return Err(bad("failed to parse the query")),
        };
        let given = |name: &str| {
            let pair = pairs.iter().find(|(known, _)| known == name);
            pair.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
        };
        let can_wait = given("canWait").map(parse_bool);
        let can_wait = can_wait.unwrap_or(Some(false)).ok_or(bad(BAD_WAIT))?;
        let max_requests = number(given("maxRequests"), (BAD_RATE, NO_RATE), allowed.rate)?;
        let max_in_queue =
            number(given("maxRequestsInQueue"), (BAD_QUEUE, NO_QUEUE), allowed.queue)?;
        let tokens = given("tokens").map(|value| value.parse().map_err(|_| bad(BAD_TOKENS)));
        let timeout = given("timeout").map(|value| timeout(value).ok_or(bad(BAD_TIMEOUT)));
        Ok(Self {
            can_wait,
            max_requests: within(max_requests, 1, OUT_OF_RATE)?,
            max_in_queue: within(max_in_queue, 0, OUT_OF_QUEUE)?,
            tokens: tokens.transpose()?.unwrap_or(0),
            timeout: timeout.transpose()?,
        })
    }
}

/// As Go's `strconv.ParseBool` reads it.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// As Go's `strconv.ParseInt` reads 32 bits, in base 10; -1 stands for nothing, as in GoCC.
fn number(
    given: Option<&str>,
    (unreadable, disabled): (&'static str, &'static str),
    allowed: bool,
) -> Result<Option<i32>, Wrong> {
    let number = given.map(|value| value.parse().map_err(|_| bad(unreadable))).transpose()?;
    match number.filter(|&number| number != -1) {
        Some(_) if !allowed => Err((StatusCode::FORBIDDEN, disabled)),
        number => Ok(number),
    }
}

fn within(number: Option<i32>, least: i32, what: &'static str) -> Result<Option<u32>, Wrong> {
    match number {
        Some(number) if !(least..=MOST).contains(&number) => Err(bad(what)),
        number => Ok(number.and_then(|number| u32::try_from(number).ok())),
    }
}

/// `1.5s`, `200ms`, or a number of seconds.
fn timeout(text: &str) -> Option<Duration> {
    let seconds = || Duration::try_from_secs_f64(text.parse().ok()?).ok();
    duration::go(text).or_else(seconds)
}

fn bad(what: &'static str) -> Wrong {
    (StatusCode::BAD_REQUEST, what)
}

const BAD_WAIT: &str = "failed to parse canWait query parameter";
const BAD_RATE: &str = "failed to parse maxRequests query parameter";
const BAD_QUEUE: &str = "failed to parse maxRequestsInQueue query parameter";
const NO_RATE: &str = "maxRequests query parameter is disabled";
const NO_QUEUE: &str = "maxRequestsInQueue query parameter is disabled";
const OUT_OF_RATE: &str = "maxRequests out of bounds";
const OUT_OF_QUEUE: &str = "maxRequestsInQueue out of bounds";
const BAD_TOKENS: &str = "failed to parse tokens query parameter";
const BAD_TIMEOUT: &str = "failed to parse timeout query parameter";

/// What GoCC takes.
const MOST: i32 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Allowed = Allowed { rate: true, queue: true };
    const NONE: Allowed = Allowed { rate: false, queue: false };

    fn read(query: &str, allowed: Allowed) -> Result<Asked, (u16, &'static str)> {
        let uri = format!("/rate/k{query}").parse().unwrap();
        Asked::read(&uri, allowed).map_err(|(status, what)| (status.as_u16(), what))
    }

    #[test]
    fn a_query_is_read_as_gocc_reads_it() {
        let all = "?canWait=T&maxRequests=%207&maxRequestsInQueue=0&tokens=9&timeout=1.5s&other=1";
        let asked = Asked {
            can_wait: true,
            max_requests: Some(7),
            max_in_queue: Some(0),
            tokens: 9,
            timeout: Some(Duration::from_millis(1500)),
        };
        assert_eq!(read(all, ALL), Ok(asked));
        for nothing in ["", "?", "?canWait=&maxRequests=&x", "?canWait=f", "?maxRequests=-1"] {
            assert_eq!(read(nothing, NONE), Ok(Asked::default()), "{nothing}");
        }
        assert_eq!(read("?timeout=2", ALL).unwrap().timeout, Some(Duration::from_secs(2)));
        assert!(!read("?canWait=0&canWait=1", ALL).unwrap().can_wait);
    }

    #[test]
    fn what_is_wrong_with_it_is_told_as_gocc_tells_it() {
        for (query, allowed, status, what) in [
            ("?canWait=yes", ALL, 400, BAD_WAIT),
            ("?maxRequests=many", ALL, 400, BAD_RATE),
            ("?maxRequests=2147483648", ALL, 400, BAD_RATE),
            ("?maxRequests=many", NONE, 400, BAD_RATE),
            ("?maxRequests=5", NONE, 403, NO_RATE),
            ("?maxRequests=0", ALL, 400, OUT_OF_RATE),
            ("?maxRequests=-2", ALL, 400, OUT_OF_RATE),
            ("?maxRequests=1000000001", ALL, 400, OUT_OF_RATE),
            ("?maxRequestsInQueue=1.5", ALL, 400, BAD_QUEUE),
            ("?maxRequestsInQueue=5", NONE, 403, NO_QUEUE),
            ("?maxRequestsInQueue=-2", ALL, 400, OUT_OF_QUEUE),
            ("?tokens=-1", ALL, 400, BAD_TOKENS),
            ("?timeout=-1", ALL, 400, BAD_TIMEOUT),
            ("?timeout=NaN", ALL, 400, BAD_TIMEOUT),
        ] {
            assert_eq!(read(query, allowed), Err((status, what)), "{query}");
        }
    }
}
