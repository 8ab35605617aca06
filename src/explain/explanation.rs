use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::har::{Entry, Response};
use crate::provider::{ApiError, Class, Estimate, LimitReadings, Profile, Scanned, Scanner};
use crate::quota::{Cost, Dimension, Usage};

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
    /// When the response ended, in nanoseconds since the Unix epoch.
    pub ended_unix_nanos: Option<u64>,
}

/// Reads a recorded exchange as the middleware reads a live one.
#[must_use]
pub fn explain(entry: &Entry) -> Explanation {
    let (request, response) = (&entry.request, &entry.response);
    let profile = Profile::find(&request.url);
    let Scanned { usage, error, .. } = scan(profile, response);
    let status = StatusCode::from_u16(response.status).ok();
    // No status: no response came, as behind a broken connection.
    let class = status.map_or(Class::Transient, |status| {
        profile.classify(status, &response.headers, &response.body)
    });
    let in_band = error.is_some() && class == Class::Ok;
    let class = match &error {
        Some(error) if in_band => profile.classify_in_band(error),
        _ => class,
    };
    let clock = Clock(entry.ended_unix_nanos);
    Explanation {
        estimate: profile.read_request(&request.url, &request.body),
        limits: clock.limits(profile, &response.headers),
        retry_after: clock.retry_after(profile, response, in_band, error.as_ref(), class),
        ended_unix_nanos: entry.ended_unix_nanos,
        profile,
        usage,
        class,
        error,
        in_band,
    }
}

impl Explanation {
    /// What the usage settles the charge to, where the response states it.
    pub fn settled(&self) -> Option<Cost> {
        self.usage.map(|usage| self.profile.charge(&self.estimate.cost, &usage))
    }

    /// The class by its name in JSON: `ok`, `transient`, `until_reset`, `terminal`, or `in_band` for
    /// an error in the body of a success.
    pub fn class_name(&self) -> &'static str {
        match self.class {
            _ if self.in_band => "in_band",
            Class::Ok => "ok",
            Class::Transient => "transient",
            Class::UntilReset => "until_reset",
            Class::Terminal => "terminal",
        }
    }

    /// What is missing from the total-token limit after this exchange: if the bucket was full
    /// before it, that is what the provider charged.
    pub(super) fn missing_tokens(&self) -> Option<u64> {
        let tokens = self.limits.iter().find(|limit| limit.dimension == Dimension::Tokens)?;
        tokens.limit?.checked_sub(tokens.remaining?)
    }
}

fn scan(profile: Profile, response: &Response) -> Scanned {
    let mut scanner = Scanner::of(profile, &response.headers);
    scanner.feed(&response.body);
    scanner.finish()
}

/// The time of the exchange, where the recording tells it.
struct Clock(Option<u64>);

impl Clock {
    fn limits(&self, profile: Profile, headers: &HeaderMap) -> LimitReadings {
        profile.limits(headers)
    }

    fn retry_after(
        &self,
        profile: Profile,
        response: &Response,
        in_band: bool,
        error: Option<&ApiError>,
        class: Class,
    ) -> Option<Duration> {
        if class == Class::Ok {
            return None;
        }
        let body = match error {
            // The rest of the body is what was generated until then.
            Some(error) if in_band => error.message().as_bytes(),
            _ => &response.body,
        };
        profile.retry_delay(&response.headers, body, self.0.unwrap_or(0))
    }
}
