use std::time::Duration;

use axum::extract::Query;
use axum::http::{StatusCode, Uri};

use super::rate_error::RateError;
use paceline::provider::seam::go_duration;

/// The query parameters of a request to `/rate`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RateQuery {
    pub(super) can_wait: bool,
    pub(super) max_requests: Option<u32>,
    pub(super) max_in_queue: Option<u32>,
    pub(super) tokens: u64,
    pub(super) timeout: Option<Duration>,
}

/// The parameters that the configuration allows requests to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AllowedParameters {
    pub(super) can_set_rate: bool,
    pub(super) can_set_queue: bool,
}

impl RateQuery {
    /// Parses the query of a URI. Empty values are ignored; the first of repeated parameters counts.
    pub(super) fn parse(uri: &Uri, allowed: AllowedParameters) -> Result<Self, RateError> {
        if uri.query().is_none() {
            return Ok(Self::default());
        }
        let pairs: Vec<(String, String)> = match Query::try_from_uri(uri) {
            Ok(Query(pairs)) => pairs,
            Err(_) => return Err(RateError::invalid("failed to parse the query")),
        };
        let value_of = |name: &str| {
            let pair = pairs.iter().find(|(known, _)| known == name);
            pair.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
        };
        let can_wait = value_of("canWait").map(parse_bool);
        let can_wait = can_wait.unwrap_or(Some(false)).ok_or(RateError::invalid(BAD_WAIT))?;
        let max_requests =
            number(value_of("maxRequests"), allowed.can_set_rate, BAD_RATE, RATE_DISABLED)?;
        let max_in_queue = number(
            value_of("maxRequestsInQueue"),
            allowed.can_set_queue,
            BAD_QUEUE,
            QUEUE_DISABLED,
        )?;
        let tokens = value_of("tokens")
            .map(|value| value.parse().map_err(|_| RateError::invalid(BAD_TOKENS)));
        let timeout =
            value_of("timeout").map(|value| timeout(value).ok_or(RateError::invalid(BAD_TIMEOUT)));
        Ok(Self {
            can_wait,
            max_requests: within(max_requests, 1, RATE_OUT_OF_BOUNDS)?,
            max_in_queue: within(max_in_queue, 0, QUEUE_OUT_OF_BOUNDS)?,
            tokens: tokens.transpose()?.unwrap_or(0),
            timeout: timeout.transpose()?,
        })
    }
}

/// Parses a boolean like Go's `strconv.ParseBool`.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Parses a decimal number like Go's `strconv.ParseInt` with 32 bits; -1 means not set, as in GoCC.
fn number(
    value: Option<&str>,
    is_allowed: bool,
    unreadable: &'static str,
    disabled: &'static str,
) -> Result<Option<i32>, RateError> {
    let number =
        value.map(|value| value.parse().map_err(|_| RateError::invalid(unreadable))).transpose()?;
    match number.filter(|&number| number != -1) {
        Some(_) if !is_allowed => Err(RateError { status: StatusCode::FORBIDDEN, text: disabled }),
        number => Ok(number),
    }
}

fn within(number: Option<i32>, min: i32, text: &'static str) -> Result<Option<u32>, RateError> {
    match number {
        Some(number) if !(min..=MAX).contains(&number) => Err(RateError::invalid(text)),
        number => Ok(number.and_then(|number| u32::try_from(number).ok())),
    }
}

/// Parses `1.5s`, `200ms`, or a number of seconds.
fn timeout(text: &str) -> Option<Duration> {
    let seconds = || Duration::try_from_secs_f64(text.parse().ok()?).ok();
    go_duration(text).or_else(seconds)
}

const BAD_WAIT: &str = "failed to parse canWait query parameter";
const BAD_RATE: &str = "failed to parse maxRequests query parameter";
const BAD_QUEUE: &str = "failed to parse maxRequestsInQueue query parameter";
const RATE_DISABLED: &str = "maxRequests query parameter is disabled";
const QUEUE_DISABLED: &str = "maxRequestsInQueue query parameter is disabled";
const RATE_OUT_OF_BOUNDS: &str = "maxRequests out of bounds";
const QUEUE_OUT_OF_BOUNDS: &str = "maxRequestsInQueue out of bounds";
const BAD_TOKENS: &str = "failed to parse tokens query parameter";
const BAD_TIMEOUT: &str = "failed to parse timeout query parameter";

/// The maximum of GoCC.
const MAX: i32 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: AllowedParameters = AllowedParameters { can_set_rate: true, can_set_queue: true };
    const NONE: AllowedParameters = AllowedParameters { can_set_rate: false, can_set_queue: false };

    fn parse(query: &str, allowed: AllowedParameters) -> Result<RateQuery, (u16, &'static str)> {
        let uri = format!("/rate/k{query}").parse().unwrap();
        RateQuery::parse(&uri, allowed).map_err(|error| (error.status.as_u16(), error.text))
    }

    #[test]
    fn query_is_parsed_like_gocc() {
        let all = "?canWait=T&maxRequests=%207&maxRequestsInQueue=0&tokens=9&timeout=1.5s&other=1";
        let query = RateQuery {
            can_wait: true,
            max_requests: Some(7),
            max_in_queue: Some(0),
            tokens: 9,
            timeout: Some(Duration::from_millis(1500)),
        };
        assert_eq!(parse(all, ALL), Ok(query));
        for empty in ["", "?", "?canWait=&maxRequests=&x", "?canWait=f", "?maxRequests=-1"] {
            assert_eq!(parse(empty, NONE), Ok(RateQuery::default()), "{empty}");
        }
        assert_eq!(parse("?timeout=2", ALL).unwrap().timeout, Some(Duration::from_secs(2)));
        assert!(!parse("?canWait=0&canWait=1", ALL).unwrap().can_wait);
    }

    #[test]
    fn query_errors_match_gocc() {
        for (query, allowed, status, text) in [
            ("?canWait=yes", ALL, 400, BAD_WAIT),
            ("?maxRequests=many", ALL, 400, BAD_RATE),
            ("?maxRequests=2147483648", ALL, 400, BAD_RATE),
            ("?maxRequests=many", NONE, 400, BAD_RATE),
            ("?maxRequests=5", NONE, 403, RATE_DISABLED),
            ("?maxRequests=0", ALL, 400, RATE_OUT_OF_BOUNDS),
            ("?maxRequests=-2", ALL, 400, RATE_OUT_OF_BOUNDS),
            ("?maxRequests=1000000001", ALL, 400, RATE_OUT_OF_BOUNDS),
            ("?maxRequestsInQueue=1.5", ALL, 400, BAD_QUEUE),
            ("?maxRequestsInQueue=5", NONE, 403, QUEUE_DISABLED),
            ("?maxRequestsInQueue=-2", ALL, 400, QUEUE_OUT_OF_BOUNDS),
            ("?tokens=-1", ALL, 400, BAD_TOKENS),
            ("?timeout=-1", ALL, 400, BAD_TIMEOUT),
            ("?timeout=NaN", ALL, 400, BAD_TIMEOUT),
        ] {
            assert_eq!(parse(query, allowed), Err((status, text)), "{query}");
        }
    }
}
