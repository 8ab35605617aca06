//! A client with a limit on spending against the simulated provider that enforces the same one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use paceline::Timestamp;
use paceline::limiter::{Clock, Limiter, TokioClock};
use paceline::middleware::RateLimitLayer;
use paceline::price::Prices;
use paceline::provider::GEMINI;
use paceline::quota::{Algorithm, Dimension, Limit, Quota, Usage, Window};
use paceline_simulate::{OutputSize, Provider, Settings, SimulatedReply, SpendLimit};
use tower::{Layer, Service, ServiceExt};

use super::inner::{Frames, Strict};
use super::{builder, read};

/// 10 cents per rolling ten minutes: Gemini allows $10 in its tier 1.
const LIMIT: u64 = 100_000;
const TEN_MINUTES: Duration = Duration::from_secs(600);

/// The simulated provider in tokio's time, with a log of its replies.
struct Simulated {
    provider: Mutex<Provider>,
    clock: TokioClock,
    started: Timestamp,
    /// The times and costs of the answers, and the number of refusals.
    log: Mutex<(Vec<(Duration, u64)>, usize)>,
}

impl Simulated {
    fn new() -> Arc<Self> {
        let prices = Prices::built_in();
        let spend = SpendLimit::new(LIMIT, move |_, model, usage| {
            let usage = Usage { input: usage.input, output: usage.output, ..Usage::default() };
            prices.of(GEMINI, model).map(|price| price.cost(&usage))
        });
        let latency = (Duration::from_millis(200), Duration::from_secs(8));
        let settings = Settings::default()
            .with_spend(spend)
            .with_output(OutputSize::Uniform(1, 2_000))
            .with_latency(latency.0, latency.1)
            .with_seed(7);
        let clock = TokioClock::new();
        let (started, log) = (clock.now(), Mutex::default());
        Arc::new(Self { provider: Mutex::new(Provider::new(settings)), clock, started, log })
    }

    async fn answer(self: Arc<Self>, request: Request<String>) -> Response<Frames> {
        let now = self.clock.now() - self.started;
        let (path, body) = (request.uri().path(), request.body().as_bytes());
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap();
        let reply: SimulatedReply = self.provider.lock().unwrap().receive(nanoseconds, path, body);
        {
            let mut log = self.log.lock().unwrap();
            match reply.status {
                200 => log.0.push((now, reply.spent)),
                _ => log.1 += 1,
            }
        }
        tokio::time::sleep(reply.latency).await;
        let mut response = Frames::default().data(reply.body.bytes()).into_response();
        *response.status_mut() = reply.status.try_into().unwrap();
        response
    }

    /// Returns the most that was spent within any ten minutes.
    fn most_spent(&self) -> u64 {
        let spent = &self.log.lock().unwrap().0;
        let within = |from: Duration| {
            (spent.iter())
                .filter(move |(at, _)| (from..from + TEN_MINUTES).contains(at))
                .map(|(_, cost)| cost)
                .sum()
        };
        spent.iter().map(|(from, _)| within(*from)).max().unwrap_or(0)
    }
}

fn limiter() -> Limiter {
    let window = Window::new(TEN_MINUTES).unwrap();
    let limit = Limit::new(Dimension::usd(), LIMIT, window)
        .unwrap()
        .with_algorithm(Algorithm::SlidingWindow);
    builder().provider(GEMINI).quota("project", Quota::new().limit(limit)).build().unwrap()
}

fn generate(model: &str, output: u64) -> Request<String> {
    let body = serde_json::json!({
        "contents": [{"role": "user", "parts": [{"text": "Say this is a test"}]}],
        "generationConfig": {"maxOutputTokens": output},
    });
    let path = format!("/v1beta/models/{model}:generateContent");
    Request::post(path).body(body.to_string()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn matching_limit_on_spending_earns_no_refusal() {
    let simulated = Simulated::new();
    let limiter = limiter();
    let layer = RateLimitLayer::new(limiter.clone()).provider(GEMINI).scope("project");
    let provider = Arc::clone(&simulated);
    let client = layer.layer(Strict::new(move |request| {
        let provider = Arc::clone(&provider);
        async move { Ok(provider.answer(request).await) }
    }));
    let requests = (0..200_u64).map(|n| {
        let mut client = client.clone();
        tokio::spawn(async move {
            let model = if n.is_multiple_of(5) { "gemini-2.5-pro" } else { "gemini-2.5-flash" };
            let request = generate(model, 100 + n * 7);
            let response = client.ready().await.unwrap().call(request).await.unwrap();
            let status = response.status();
            read(response).await.unwrap();
            status.as_u16()
        })
    });
    let requests: Vec<_> = requests.collect();
    for request in requests {
        assert_eq!(request.await.unwrap(), 200);
    }
    let (answers, refusals) = simulated.log.lock().unwrap().clone();
    let total: u64 = answers.iter().map(|(_, cost)| cost).sum();
    assert_eq!((answers.len(), refusals), (200, 0));
    let stats = simulated.provider.lock().unwrap().stats().total;
    assert_eq!(stats.charged_micro_usd, total);
    let most = simulated.most_spent();
    assert!(total > 3 * LIMIT && most <= LIMIT, "{most} of {LIMIT}, {total} in total");
}
