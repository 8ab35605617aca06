use std::time::{Duration, SystemTime};

use http::header::{DATE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

use super::har::{Entry, Response};
use tollgate::Timestamp;
use tollgate::provider::{ApiError, Class, Estimate, LimitReadings, Profile, Scanned, Scanner};
use tollgate::quota::{Cost, Dimension, Usage};

/// What tollgate makes of one recorded exchange.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// Whose rules count, told by the URL.
    pub profile: Profile,
    /// What the request is and costs, as reserved before it is sent.
    pub estimate: Estimate,
    /// What the response states that it used.
    pub usage: Option<Usage>,
    /// What the headers say was charged to the token limit, with providers that say so.
    pub charged: Option<u64>,
    /// What the headers say of limits.
    pub limits: LimitReadings,
    /// What the response means for the request.
    pub class: Class,
    /// What the response says of an error, in the body of a success too.
    pub error: Option<ApiError>,
    /// Whether the error came in the body of a success.
    pub in_band: bool,
    /// How long the provider asks to wait before the next try; `None` where there was no error.
    pub retry_after: Option<Duration>,
    /// When the response ended.
    pub ended_at: Option<Timestamp>,
}

/// Reads a recorded exchange as the middleware reads a live one.
#[must_use]
pub fn explain(entry: &Entry) -> Explanation {
    let (request, response) = (&entry.request, &entry.response);
    let profile = Profile::find(&request.url);
    let Scanned { usage, error, .. } = scan(profile, response);
    let (class, in_band) = judge(profile, response, error.as_ref());
    let headers = dated(&response.headers, entry.ended_at);
    let body = match &error {
        // The rest of the body is what was generated until then.
        Some(error) if in_band => error.message().as_bytes(),
        _ => &response.body,
    };
    let delay = || profile.retry_delay(&headers, body, entry.ended_at.unwrap_or_default());
    Explanation {
        estimate: profile.read_request(&request.url, &request.body),
        charged: profile.charged_in_head(&headers),
        limits: profile.limits(&headers),
        // `retry-after` stands on successes too: no refusal there.
        retry_after: if class == Class::Ok { None } else { delay() },
        ended_at: entry.ended_at,
        profile,
        usage,
        class,
        error,
        in_band,
    }
}

impl Explanation {
    /// What the response settles the charge to, where it states its usage.
    pub fn settled(&self) -> Option<Cost> {
        let cost = self.profile.charge(&self.estimate.cost, &self.usage?);
        Some(match self.charged {
            Some(charged) => cost.tokens(charged),
            None => cost,
        })
    }

    /// The class by its name in JSON: `ok`, `transient`, `until_reset`, `terminal`, or `in_band` for
    /// an error in the body of a success.
    pub fn class_name(&self) -> &'static str {
        if self.in_band { "in_band" } else { self.class.as_str() }
    }

    /// What is missing from the total-token limit after this exchange: if the bucket was full
    /// before it, that is what the provider charged.
    pub(super) fn missing_tokens(&self) -> Option<u64> {
        let tokens = self.limits.iter().find(|limit| limit.dimension == Dimension::Tokens)?;
        tokens.limit?.checked_sub(tokens.remaining?)
    }
}

/// What the response means for the request, and whether its body, that of a success, said so.
fn judge(profile: Profile, response: &Response, error: Option<&ApiError>) -> (Class, bool) {
    // No status: no response came, as behind a broken connection.
    let Ok(status) = StatusCode::from_u16(response.status) else {
        return (Class::Transient, false);
    };
    match (profile.classify(status, &response.headers, &response.body), error) {
        (Class::Ok, Some(error)) => (profile.classify_in_band(error), true),
        (class, _) => (class, false),
    }
}

fn scan(profile: Profile, response: &Response) -> Scanned {
    let mut scanner = Scanner::of(profile, &response.headers);
    scanner.feed(&response.body);
    scanner.finish()
}

/// The headers with a `date`, from which times in them are counted. Where nothing tells the time, a
/// date to wait for tells no delay.
fn dated(headers: &HeaderMap, ended: Option<Timestamp>) -> HeaderMap {
    let mut headers = headers.clone();
    let is_date = |value: &HeaderValue| {
        value.to_str().is_ok_and(|date| httpdate::parse_http_date(date.trim()).is_ok())
    };
    match ended.map(SystemTime::from) {
        Some(ended) if !headers.contains_key(DATE) => {
            let date = HeaderValue::from_str(&httpdate::fmt_http_date(ended)).ok();
            // Fails past 32,768 headers.
            date.map(|date| headers.try_insert(DATE, date));
        }
        None if headers.get(RETRY_AFTER).is_some_and(is_date) => drop(headers.remove(RETRY_AFTER)),
        _ => {}
    }
    headers
}
