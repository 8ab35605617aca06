//! A provider in virtual time, whose limits aren't what its clients were told.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use paceline::Timestamp;
use paceline::limiter::{Clock, TokioClock};
use parking_lot::Mutex;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

pub(super) use super::meter::Counting;
use super::meter::Meter;

/// The settings of a provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// Requests or tokens per second.
    pub(super) rate: f64,
    /// The seconds of its rate that the provider's bucket holds.
    pub(super) burst: f64,
    pub(super) counting: Counting,
    pub(super) unit: Unit,
    /// `true` if each model has a limit of its own.
    pub(super) is_per_model: bool,
    pub(super) headers: Headers,
    pub(super) retry_after: RetryAfter,
    /// The time that an answer takes.
    pub(super) latency: Duration,
    /// The part of the rate that others use.
    pub(super) others: f64,
}

/// The amounts that a provider limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Requests,
    /// The `max_tokens` of a request, and some for its prompt.
    Tokens,
}

/// The limit headers of responses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Headers {
    None,
    /// The limit as requests per minute.
    PerMinute,
    /// The same, with the time until nothing is used.
    WithReset,
}

/// The delay that refusals state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RetryAfter {
    None,
    Seconds,
}

/// The record of a provider's answers.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// The accepted amount in the provider's unit.
    pub(super) taken: f64,
}

pub(super) type Provider = BoxCloneSyncService<Request<Bytes>, Response<Full<Bytes>>, Infallible>;

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate: 20.0,
            burst: 1.0,
            counting: Counting::Bucket,
            unit: Unit::Requests,
            is_per_model: false,
            headers: Headers::PerMinute,
            retry_after: RetryAfter::Seconds,
            latency: Duration::from_millis(150),
            others: 0.0,
        }
    }
}

/// The limits of a provider, by model.
type Meters = Arc<Mutex<HashMap<String, Meter>>>;

/// Starts a provider.
pub(super) fn start(settings: Settings) -> (Provider, Arc<Mutex<Ledger>>) {
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let (meters, record, clock) = (Meters::default(), Arc::clone(&ledger), TokioClock::new());
    let service = service_fn(move |request: Request<Bytes>| {
        let (ledger, meters, clock) = (Arc::clone(&record), Arc::clone(&meters), clock);
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let (model, cost) = settings.charge(request.body());
            let (headers, is_accepted) = settings.admit(&meters, model, cost, clock.now());
            let body = if is_accepted { ANSWER } else { settings.refusal() };
            let mut response = Response::new(Full::new(Bytes::from_static(body)));
            *response.headers_mut() = headers;
            if is_accepted {
                {
                    let mut ledger = ledger.lock();
                    (ledger.accepted, ledger.taken) = (ledger.accepted + 1, ledger.taken + cost);
                }
                tokio::time::sleep(settings.latency).await;
            } else {
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                ledger.lock().refused += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(response)
        }
    });
    (BoxCloneSyncService::new(service), ledger)
}

impl Settings {
    /// Returns the amount that the provider can accept in this time, beginning with unused limits.
    pub(super) fn most(&self, seconds: f64) -> f64 {
        match self.counting {
            Counting::Bucket => {
                (self.rate * self.burst).max(1.0) + self.rate * (1.0 - self.others) * seconds
            }
            Counting::Fixed(window) | Counting::Sliding(window) => {
                self.rate * window * (seconds / window).ceil()
            }
        }
    }

    /// Returns the model that counts a request, and its charge.
    fn charge(&self, body: &Bytes) -> (String, f64) {
        let body: serde_json::Value = serde_json::from_slice(body).unwrap();
        let model = body["model"].as_str().filter(|_| self.is_per_model);
        let cost = match self.unit {
            Unit::Requests => 1.0,
            Unit::Tokens => 8.0 + body["max_tokens"].as_f64().unwrap_or(0.0),
        };
        (model.unwrap_or_default().to_owned(), cost)
    }

    /// Charges a request if it fits. Returns the headers of its response.
    fn admit(
        &self,
        meters: &Meters,
        model: String,
        cost: f64,
        now: Timestamp,
    ) -> (HeaderMap, bool) {
        let mut meters = meters.lock();
        let new = || Meter::new(self.counting, self.rate, self.burst, now);
        let meter = meters.entry(model).or_insert_with(new);
        let taken = meter.take(cost, 1.0 - self.others, now);
        let mut headers = HeaderMap::new();
        let unit = match self.unit {
            Unit::Requests => "requests",
            Unit::Tokens => "tokens",
        };
        let mut state = |part: &str, value: String| {
            let name = http::HeaderName::try_from(format!("x-ratelimit-{part}-{unit}")).unwrap();
            headers.insert(name, value.parse().unwrap());
        };
        if self.headers != Headers::None {
            state("limit", format!("{:.0}", self.rate * 60.0));
            state("remaining", format!("{:.0}", meter.left().floor()));
        }
        if self.headers == Headers::WithReset {
            state("reset", format!("{:.3}s", meter.full_after(now)));
        }
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if let (Err(short), RetryAfter::Seconds) = (taken, self.retry_after) {
            let seconds = format!("{:.0}", short.ceil().max(1.0));
            headers.insert("retry-after", seconds.parse().unwrap());
        }
        (headers, taken.is_ok())
    }

    fn refusal(&self) -> &'static [u8] {
        match self.unit {
            Unit::Requests => REFUSED_REQUESTS,
            Unit::Tokens => REFUSED_TOKENS,
        }
    }
}

const ANSWER: &[u8] = br#"{"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}"#;
const REFUSED_REQUESTS: &[u8] =
    br#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;
const REFUSED_TOKENS: &[u8] =
    br#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#;
