//! Jobs through the whole limiter, against providers whose limits aren't what the limiter was told.

mod algorithms;
mod meter;
mod provider;
#[cfg(all(feature = "cluster", feature = "metrics"))]
mod reports;
mod retries;
mod work;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::Request;
use paceline::limiter::{Clock, Limiter, TokioClock};
use paceline::middleware::{Http, RetryService};
use paceline::provider::{COMPATIBLE, OPENAI, Profile};
use paceline::{Quota, RateLimitLayer, Timestamp};
use parking_lot::Mutex;
use provider::{Headers, Ledger, Provider, RetryAfter, Settings};
use tower::{Layer, ServiceExt};

type Layered = RetryService<Provider, Http, Http>;

/// A client with a limiter, and the record of its provider.
type Client = (Layered, Arc<Mutex<Ledger>>);

/// The result of a job.
#[derive(Debug)]
struct Outcome {
    answered: u64,
    refused: u64,
    /// The accepted part of what the provider could accept.
    used: f64,
}

/// Requests that are sent at once, in one part or several.
struct Job {
    parts: Vec<Vec<Request<Bytes>>>,
    /// The time between the answers of a part and the requests of the next one.
    pause: Duration,
}

impl Job {
    fn new(parts: Vec<Vec<Request<Bytes>>>, pause: Duration) -> Self {
        Self { parts, pause }
    }

    /// Returns a job of one part.
    fn plain(requests: usize) -> Self {
        Self::new(vec![Self::equal(requests)], Duration::ZERO)
    }

    fn equal(requests: usize) -> Vec<Request<Bytes>> {
        (0..requests).map(|_| chat("m")).collect()
    }

    fn requests(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Sends the requests. A provider's limits are unused again after each pause.
    async fn run(self, (service, ledger): Client, settings: Settings) -> Outcome {
        let (mut answered, mut most) = (0, 0.0);
        for part in self.parts {
            let taken = ledger.lock().taken;
            let (clock, begin) = started();
            let mut answers: FuturesUnordered<_> =
                part.into_iter().map(|request| service.clone().oneshot(request)).collect();
            while let Some(answer) = answers.next().await {
                answered += u64::from(answer.unwrap().status().is_success());
            }
            let seconds = (clock.now() - begin).as_secs_f64();
            let taken = ledger.lock().taken - taken;
            let refilled = settings.rate * (1.0 - settings.others) * seconds;
            most += settings.most(seconds).min(taken.max(refilled));
            tokio::time::sleep(self.pause).await;
        }
        let ledger = ledger.lock();
        Outcome { answered, refused: ledger.refused, used: ledger.taken / most }
    }
}

/// Returns a request to a model.
fn chat(model: &str) -> Request<Bytes> {
    let body = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"hi"}}]}}"#);
    Request::post("/v1/chat/completions").body(body.into()).unwrap()
}

/// Returns a clock and its time.
fn started() -> (TokioClock, Timestamp) {
    let clock = TokioClock::new();
    let begin = clock.now();
    (clock, begin)
}

/// Returns a client of a new provider.
fn client(limiter: &Limiter, settings: Settings) -> Client {
    let (provider, ledger) = provider::start(settings);
    (RateLimitLayer::new(limiter.clone()).retry(8).layer(provider), ledger)
}

/// Sends 900 requests at once to a provider, through a layer with this quota.
async fn run(settings: Settings, quota: Option<Quota>) -> Outcome {
    run_as(OPENAI, settings, quota).await
}

async fn run_as(profile: Profile, settings: Settings, quota: Option<Quota>) -> Outcome {
    let builder = Limiter::builder().clock(TokioClock::new()).provider(profile);
    let builder = quota.into_iter().fold(builder, |builder, quota| builder.quota("m", quota));
    let limiter = builder.build().unwrap();
    Job::plain(900).run(client(&limiter, settings), settings).await
}

/// Asserts that a job answers all requests, uses the limit, and is refused seldom.
async fn assert_job(name: &str, settings: Settings, quota: Option<Quota>) {
    let outcome = run(settings, quota).await;
    let Outcome { answered, refused, used } = outcome;
    assert_eq!(answered, 900, "{name}: {outcome:?}");
    assert!(refused <= 30 && used >= 0.9, "{name}: {outcome:?}");
}

fn rpm(amount: u64) -> Option<Quota> {
    Some(Quota::new().rpm(amount))
}

#[tokio::test(start_paused = true)]
async fn limit_per_minute_that_is_enforced_per_second_is_used() {
    let plain = Settings::default();
    let silent = Settings { headers: Headers::None, ..plain };
    assert_job("with headers", plain, rpm(1_200)).await;
    assert_job("without headers", silent, rpm(1_200)).await;
    assert_job(
        "without Retry-After",
        Settings { retry_after: RetryAfter::None, ..silent },
        rpm(1_200),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn limit_of_unnamed_provider_is_used() {
    let outcome = run_as(COMPATIBLE, Settings::default(), rpm(1_200)).await;
    assert!(outcome.answered == 900 && outcome.used >= 0.85, "{outcome:?}");
    assert!(outcome.refused <= 30, "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn limit_of_half_the_quota_is_used() {
    let plain = Settings { burst: 10.0, ..Settings::default() };
    let silent = Settings { headers: Headers::None, ..plain };
    assert_job("with headers", plain, rpm(2_400)).await;
    let mute = Settings { retry_after: RetryAfter::None, ..silent };
    assert_job("without headers and Retry-After", mute, rpm(2_400)).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_limit_is_used() {
    let plain = Settings::default();
    assert_job("with headers", plain, None).await;
    assert_job("without headers", Settings { headers: Headers::None, ..plain }, None).await;
}

#[tokio::test(start_paused = true)]
async fn limit_beside_others_is_used() {
    let shared = Settings { others: 0.5, ..Settings::default() };
    assert_job("others use half", shared, rpm(1_200)).await;
}

/// Sends requests of a model for a time through each of these services, 64 at a time. Returns the number of answers
/// of each.
async fn send_for(services: Vec<(Layered, &str)>, time: Duration) -> Vec<u64> {
    let (clock, begin) = started();
    let end = begin + time;
    let workers = services.iter().enumerate().flat_map(|(at, (service, model))| {
        (0..64).map(move |_| {
            let (service, clock) = (service.clone(), clock);
            async move {
                let mut answered = 0;
                while clock.now() < end {
                    let answer = service.clone().oneshot(chat(model));
                    let answer = tokio::time::timeout(end - clock.now(), answer).await;
                    answered += u64::from(answer.is_ok_and(|a| a.unwrap().status().is_success()));
                }
                (at, answered)
            }
        })
    });
    let workers: FuturesUnordered<_> = workers.collect();
    let mut answered = vec![0; services.len()];
    workers.collect::<Vec<_>>().await.into_iter().for_each(|(at, count)| answered[at] += count);
    answered
}

#[tokio::test(start_paused = true)]
async fn built_in_quota_below_the_accounts_is_exceeded() {
    // Built in: 500 requests a minute.
    let settings = Settings { rate: 33.0, headers: Headers::None, ..Settings::default() };
    let (provider, ledger) = provider::start(settings);
    let limiter = Limiter::builder().clock(TokioClock::new()).provider(OPENAI).build().unwrap();
    let service = RateLimitLayer::new(limiter).retry(8).layer(provider);
    send_for(vec![(service, "gpt-4o-mini")], Duration::from_secs(300)).await;
    let ledger = ledger.lock();
    let used = ledger.accepted as f64 / (33.0 * 300.0);
    assert!(used >= 0.75 && ledger.refused <= ledger.accepted / 33, "{used} {ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn two_programs_share_an_account() {
    let (provider, ledger) = provider::start(Settings { burst: 10.0, ..Settings::default() });
    let program = || {
        let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
        let limiter = builder.quota("gpt-4o-mini", Quota::new().rpm(1_200)).build().unwrap();
        (RateLimitLayer::new(limiter).retry(8).layer(provider.clone()), "gpt-4o-mini")
    };
    let answered = send_for(vec![program(), program()], Duration::from_secs(300)).await;
    let ledger = ledger.lock();
    let used = ledger.accepted as f64 / (20.0 * 310.0);
    let least = answered.iter().min().unwrap() * 3;
    assert!(used >= 0.9 && least >= ledger.accepted, "{used} {answered:?} {ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_cannot_wait_have_the_whole_quota_at_once() {
    let (provider, _) = provider::start(Settings { burst: 60.0, ..Settings::default() });
    let limiter = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
    let limiter = limiter.quota("m", Quota::new().rpm(1_200)).build().unwrap();
    let service = RateLimitLayer::new(limiter).reject().layer(provider);
    let sent: Vec<_> = (0..1_000).map(|_| service.clone().oneshot(chat("m"))).collect();
    let answers = futures_util::future::join_all(sent).await;
    assert!(answers.into_iter().all(|answer| answer.is_ok_and(|a| a.status().is_success())));
}

#[tokio::test(start_paused = true)]
async fn provider_that_refuses_everything_ends_the_retries() {
    let retry_after = RetryAfter::None;
    let settings = Settings { rate: 1e-6, burst: 0.0, retry_after, ..Settings::default() };
    let (provider, ledger) = provider::start(settings);
    let limiter = Limiter::builder().clock(TokioClock::new()).provider(OPENAI).build().unwrap();
    let service = RateLimitLayer::new(limiter).retry(2).layer(provider);
    let first = service.clone().oneshot(chat("m")).await.unwrap();
    assert_eq!(first.status(), 200, "the bucket holds one request");
    let (clock, begin) = started();
    assert_eq!(service.oneshot(chat("m")).await.unwrap().status(), 429);
    let time = clock.now() - begin;
    assert!(time < Duration::from_secs(300), "{time:?}");
    assert!(ledger.lock().refused < 60);
}
