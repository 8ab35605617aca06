//! Retries: conditions, delays and the final response.

mod bodies;
mod queue;
#[cfg(feature = "reqwest-middleware")]
mod reqwest;
mod stalled;
mod verdicts;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use paceline::limiter::Limiter;
use paceline::middleware::{Http, RateLimitLayer, Retries, RetryService};
use paceline::provider::OPENAI;
use paceline::quota::{Algorithm, Quota};
use parking_lot::Mutex;
use tower::Layer;

use super::builder;
use super::inner::{Frames, InnerError, Strict};

/// A provider that returns these responses in order and records the time and body of each request.
#[derive(Clone)]
struct Script {
    limiter: Limiter,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    calls: Arc<Mutex<Vec<(Duration, String)>>>,
}

type Answer = Result<Response<Frames>, InnerError>;
type Client = RetryService<Strict<Request<String>, Response<Frames>>, Http, Http>;

impl Script {
    fn new(limiter: &Limiter, answers: impl IntoIterator<Item = Response<Frames>>) -> Self {
        Self::of(limiter, answers.into_iter().map(Ok))
    }

    fn of(
        limiter: &Limiter,
        answers: impl IntoIterator<Item = Result<Response<Frames>, InnerError>>,
    ) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { limiter: limiter.clone(), answers, calls: Arc::default() }
    }

    fn client(&self, layer: &RateLimitLayer<Http, Http, Retries>) -> Client {
        layer.layer(self.service())
    }

    fn service(&self) -> Strict<Request<String>, Response<Frames>> {
        let script = self.clone();
        let begin = self.limiter.now();
        Strict::new(move |request: Request<String>| {
            let at = script.limiter.now() - begin;
            script.calls.lock().push((at, request.into_body()));
            let answer = script.answers.lock().pop_front();
            std::future::ready(answer.expect("a response for each request"))
        })
    }

    /// Asserts the times of the requests in milliseconds, within the second over which a cool-down
    /// is spread.
    fn assert_call_times(&self, at: &[u64]) {
        let times = self.call_times();
        assert_eq!(times.len(), at.len(), "{times:?}");
        let near = |(time, at): (&u64, &u64)| (*at..*at + 1_000).contains(time);
        assert!(times.iter().zip(at).all(near), "{times:?} instead of {at:?}");
    }

    /// Returns the times of the requests in milliseconds.
    fn call_times(&self) -> Vec<u64> {
        self.calls.lock().iter().map(|(at, _)| u64::try_from(at.as_millis()).unwrap()).collect()
    }
}

/// Returns a limiter with a quota in token buckets for two models.
fn limiter_with_quota() -> Limiter {
    let quota = Quota::new().rpm(600).tpm(60_000).with_algorithm(Algorithm::TokenBucket);
    builder().provider(OPENAI).quota("gpt-4o", quota.clone()).quota("o1", quota).build().unwrap()
}

fn answer(status: u16, headers: &[(&'static str, &str)], body: Frames) -> Response<Frames> {
    let mut response = body.into_response();
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let header =
        |(name, value): &(&'static str, &str)| (name.parse().unwrap(), value.parse().unwrap());
    *response.headers_mut() = headers.iter().map(header).collect::<HeaderMap>();
    response
}

fn ok() -> Response<Frames> {
    answer(200, &[], super::USAGE.into())
}

/// Returns a refusal with a delay of `seconds`.
fn refused(seconds: &str) -> Response<Frames> {
    answer(429, &[("retry-after", seconds)], LIMITED.into())
}

const LIMITED: &str = r#"{"error": {"message": "Rate limit reached", "type": "tokens", "code": "rate_limit_exceeded"}}"#;
