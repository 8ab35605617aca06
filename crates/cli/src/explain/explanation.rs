use std::time::{Duration, SystemTime};

use http::header::{DATE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

use super::har::{Entry, Response};
use paceline::Timestamp;
use paceline::provider::{
    ApiError, Class, Estimate, LimitReadings, Profile, Refusal, Scanned, Scanner,
};
use paceline::quota::{Cost, Dimension, SettleAt, Usage};

/// The explanation of a recorded exchange.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// The provider profile, detected from the URL.
    pub profile: Profile,
    /// The estimate of the request, as reserved before sending.
    pub estimate: Estimate,
    /// The usage reported in the response.
    pub usage: Option<Usage>,
    /// The charge to the token limit stated in the headers, if any.
    pub charged: Option<u64>,
    /// The limits stated in the headers.
    pub limits: LimitReadings,
    /// The status; `None` without a response.
    pub status: Option<u16>,
    /// The class of the response.
    pub class: Class,
    /// The error in the response, in the body of a success too.
    pub error: Option<ApiError>,
    /// True if the error is in the body of a success.
    pub in_band: bool,
    /// The delay before a retry; `None` without an error.
    pub retry_after: Option<Duration>,
    /// The refusal, in the body of a success too.
    pub refusal: Option<Refusal>,
    /// The time at which the response ended.
    pub ended_at: Option<Timestamp>,
}

/// Explains a recorded exchange, read as the middleware reads a live one.
#[must_use]
pub fn explain(entry: &Entry) -> Explanation {
    let (request, response) = (&entry.request, &entry.response);
    let profile = Profile::find(&request.url);
    let Scanned { usage, error, .. } = scan(profile, response);
    let (class, in_band) = judge(profile, response, error.as_ref());
    let headers = dated(&response.headers, entry.ended_at);
    let refusal = refusal(profile, entry, &headers, error.as_ref().filter(|_| in_band));
    let delay =
        || profile.retry_delay(&headers, &response.body, entry.ended_at.unwrap_or_default());
    Explanation {
        estimate: profile.read_request(&request.url, &request.body),
        charged: profile.charged_in_head(&headers),
        limits: profile.limits(&headers),
        // Successes may have `retry-after` too.
        retry_after: match class {
            Class::Ok => None,
            // The rest of the body is generated text.
            _ if in_band => refusal.as_ref().and_then(|refusal| refusal.delay),
            _ => delay(),
        },
        refusal,
        ended_at: entry.ended_at,
        status: Some(response.status).filter(|status| *status > 0),
        profile,
        usage,
        class,
        error,
        in_band,
    }
}

impl Explanation {
    /// Returns the settled charge, if the response reports its usage.
    pub fn settled(&self) -> Option<Cost> {
        let cost = self.profile.charge(&self.estimate.cost, &self.usage?);
        Some(match self.charged {
            Some(charged) => cost.tokens(charged),
            None => cost,
        })
    }

    /// Returns the tokens that the token limit is charged by the provider's rule: those at admission if the usage
    /// has no effect on them, else those of the reported usage. `None` if the usage isn't reported.
    pub(super) fn charged_tokens(&self) -> Option<u64> {
        let tokens = |cost: &Cost| cost.amount(&Dimension::Tokens);
        let Self { profile, estimate, .. } = self;
        match profile.settles(&Dimension::Tokens) {
            SettleAt::Send => Some(tokens(&estimate.cost)),
            _ => self.usage.map(|usage| {
                tokens(&estimate.terms.apply(profile.charge(&estimate.cost, &usage), &usage))
            }),
        }
    }

    /// Returns the class name in JSON: `ok`, `transient`, `until_reset`, `terminal`, or `in_band`
    /// for an error in the body of a success.
    pub fn class_name(&self) -> &'static str {
        if self.in_band { "in_band" } else { self.class.as_str() }
    }

    /// Returns the tokens missing from the token limit after this exchange: the charge, if the
    /// bucket was full.
    pub(super) fn missing_tokens(&self) -> Option<u64> {
        let tokens = self.limits.iter().find(|limit| limit.dimension == Dimension::Tokens)?;
        tokens.limit?.checked_sub(tokens.remaining?)
    }
}

/// Returns the class, and true if the error is in the body of a success.
fn judge(profile: Profile, response: &Response, error: Option<&ApiError>) -> (Class, bool) {
    // No status: there was no response.
    let Ok(status) = StatusCode::from_u16(response.status) else {
        return (Class::Transient, false);
    };
    match (profile.classify(status, &response.headers, &response.body), error) {
        (Class::Ok, Some(error)) => (profile.classify_in_band(error), true),
        (class, _) => (class, false),
    }
}

/// Reads the refusal. Without a time of the response, a time that it states is no delay.
fn refusal(
    profile: Profile,
    entry: &Entry,
    headers: &HeaderMap,
    in_band: Option<&ApiError>,
) -> Option<Refusal> {
    let (response, now) = (&entry.response, entry.ended_at.unwrap_or_default());
    let status = StatusCode::from_u16(response.status).ok()?;
    let mut refusal = match in_band {
        Some(error) => profile.refusal_in_band(error, now)?,
        None => profile.refusal(status, headers, &response.body, now)?,
    };
    if entry.ended_at.is_none() && refusal.until.is_some() {
        // The end of a day is counted from no time.
        refusal.until = refusal.until.filter(|until| *until > Timestamp::UNIX_EPOCH + 2 * DAY);
        refusal.delay = None;
    }
    Some(refusal)
}

const DAY: Duration = Duration::from_secs(86_400);

fn scan(profile: Profile, response: &Response) -> Scanned {
    let mut scanner = Scanner::of(profile, &response.headers);
    scanner.feed(&response.body);
    scanner.finish()
}

/// Adds a `date`, to which times in headers are relative. Without any time, a date in `retry-after`
/// is removed.
fn dated(headers: &HeaderMap, ended: Option<Timestamp>) -> HeaderMap {
    let mut headers = headers.clone();
    let is_date = |value: &HeaderValue| {
        value.to_str().is_ok_and(|date| httpdate::parse_http_date(date.trim()).is_ok())
    };
    match ended.map(SystemTime::from) {
        Some(ended) if !headers.contains_key(DATE) => {
            let date = HeaderValue::from_str(&httpdate::fmt_http_date(ended)).ok();
            // Fails beyond 32,768 headers.
            date.map(|date| headers.try_insert(DATE, date));
        }
        None if headers.get(RETRY_AFTER).is_some_and(is_date) => drop(headers.remove(RETRY_AFTER)),
        _ => {}
    }
    headers
}
