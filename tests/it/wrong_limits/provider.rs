//! A provider in virtual time, whose limits aren't what its clients were told.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use parking_lot::Mutex;
use tollgate::Timestamp;
use tollgate::limiter::{Clock, TokioClock};
use tower::service_fn;
use tower::util::BoxCloneSyncService;

/// The settings of a provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// Requests per second.
    pub(super) rate: f64,
    /// The seconds of its rate that the provider's bucket holds.
    pub(super) burst: f64,
    pub(super) headers: Headers,
    pub(super) retry_after: RetryAfter,
    /// The time that an answer takes.
    pub(super) latency: Duration,
    /// The part of the rate that others use.
    pub(super) others: f64,
}

/// The limit headers of responses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Headers {
    None,
    /// The limit as requests per minute.
    PerMinute,
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
}

struct Bucket {
    level: f64,
    at: Timestamp,
}

pub(super) type Provider = BoxCloneSyncService<Request<Bytes>, Response<Full<Bytes>>, Infallible>;

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate: 20.0,
            burst: 1.0,
            headers: Headers::PerMinute,
            retry_after: RetryAfter::Seconds,
            latency: Duration::from_millis(150),
            others: 0.0,
        }
    }
}

/// Starts a provider.
pub(super) fn start(settings: Settings) -> (Provider, Arc<Mutex<Ledger>>) {
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let room = (settings.rate * settings.burst).max(1.0);
    let clock = TokioClock::new();
    let bucket = Arc::new(Mutex::new(Bucket { level: room, at: clock.now() }));
    let record = Arc::clone(&ledger);
    let service = service_fn(move |_: Request<Bytes>| {
        let (ledger, bucket, clock) = (Arc::clone(&record), Arc::clone(&bucket), clock);
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let (short, left) = {
                let mut bucket = bucket.lock();
                let rate = settings.rate * (1.0 - settings.others);
                let now = clock.now();
                let refilled = bucket.level + (now - bucket.at).as_secs_f64() * rate;
                (bucket.level, bucket.at) = (refilled.min(room), now);
                let short = ((1.0 - bucket.level) / rate).max(0.0);
                if short <= 1e-9 {
                    bucket.level -= 1.0;
                }
                (short, bucket.level.max(0.0))
            };
            let mut response = Response::new(Full::new(Bytes::from_static(ANSWER)));
            let headers = response.headers_mut();
            if settings.headers == Headers::PerMinute {
                headers.insert("x-ratelimit-limit-requests", whole(settings.rate * 60.0));
                headers.insert("x-ratelimit-remaining-requests", whole(left));
            }
            headers.insert("content-type", "application/json".parse().unwrap());
            if short > 1e-9 {
                if settings.retry_after == RetryAfter::Seconds {
                    headers.insert("retry-after", whole(short.ceil().max(1.0)));
                }
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                *response.body_mut() = Full::new(Bytes::from_static(REFUSAL));
                ledger.lock().refused += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            } else {
                ledger.lock().accepted += 1;
                tokio::time::sleep(settings.latency).await;
            }
            Ok(response)
        }
    });
    (BoxCloneSyncService::new(service), ledger)
}

fn whole(value: f64) -> http::HeaderValue {
    http::HeaderValue::from_str(&format!("{value:.0}")).unwrap()
}

const ANSWER: &[u8] = br#"{"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}"#;
const REFUSAL: &[u8] =
    br#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;
