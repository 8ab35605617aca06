//! Headers that show more than was expected, while requests wait.

use std::time::Duration;

use paceline::limiter::TokioClock;
use paceline::provider::{LimitReading, OPENAI};
use paceline::quota::{Algorithm, Cost, Quota, Window};
use tokio::time::{sleep, timeout};

use super::{S, builder};

fn reading(remaining: u64) -> LimitReading {
    let mut headers = http::HeaderMap::new();
    headers.insert("x-ratelimit-limit-requests", "600".parse().unwrap());
    let left = remaining.to_string().parse().unwrap();
    headers.insert("x-ratelimit-remaining-requests", left);
    let mut reading: LimitReading = OPENAI.limits(&headers).remove(0);
    (reading.window, reading.granularity) = (Window::MINUTE, 1);
    reading
}

/// Returns how long requests and waits for capacity take after headers have raised what is left.
async fn wait_after_raise(requests: usize, capacities: usize) -> Duration {
    let quota = Quota::new().rpm(600).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().clock(TokioClock::new()).quota("k", quota).build().unwrap();
    let first = limiter.try_acquire("k", &Cost::new()).unwrap();
    first.observe(&[reading(99)]);
    first.settle(&Cost::new());
    // Of this request, the burst that was never seen is withheld.
    let streaming = limiter.try_acquire("k", &Cost::new()).unwrap();
    let kinds = (0..requests).map(|_| true).chain((0..capacities).map(|_| false));
    let cost = Cost::new().requests(250);
    let waiting: Vec<_> = kinds
        .map(|is_request| {
            let (limiter, cost) = (limiter.clone(), cost.clone());
            tokio::spawn(async move {
                match is_request {
                    true => drop(limiter.acquire("k", &cost).await.unwrap()),
                    false => limiter.wait_for_capacity("k", &cost).await.unwrap(),
                }
            })
        })
        .collect();
    sleep(2 * S).await;
    streaming.observe(&[reading(597)]);
    assert!(limiter.stats("k").limits[0].available >= 500);
    let begin = limiter.now();
    for waiting in waiting {
        timeout(1_000 * S, waiting).await.expect("hangs").unwrap();
    }
    limiter.now() - begin
}

#[tokio::test(start_paused = true)]
async fn headers_that_raise_what_is_left_serve_waiting_requests() {
    for (requests, capacities) in [(1, 0), (2, 0), (0, 1), (0, 2)] {
        let took = wait_after_raise(requests, capacities).await;
        assert!(took <= S, "{requests} requests and {capacities} others took {took:?}");
    }
}
