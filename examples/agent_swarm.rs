//! Fifty agents that share one account, each with a separate limiter.
//!
//! ```sh
//! cargo run --example agent_swarm
//! cargo run --features redis --example agent_swarm -- --redis redis://127.0.0.1:6379
//! cargo run --features nats --example agent_swarm -- --nats nats://127.0.0.1:4222
//! ```
//!
//! The account allows 1,200 requests per minute, and each agent could use all of them. Each agent runs
//! four tasks at a time, with one of three strategies:
//!
//! - independent: an agent detects the others only by its own 429 responses;
//! - on a bus: a 429 response to one agent reduces and pauses all of them;
//! - fixed shares: each agent has a fiftieth of the limit. This needs no bus and causes no 429 response,
//!   but an agent can't use the unused share of another. (`paceline::cluster::Shared` is a limit that
//!   all agents share.)
//!
//! The time is virtual, so that minutes pass immediately. With a real bus the time is real, and there are
//! fewer tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::{TryStreamExt, stream};
use paceline::Timestamp;
use paceline::cluster::{Agent, Bus, LocalBus};
use paceline::limiter::{AcquireError, Limiter, Permit, RateLimited, TokioClock};
use paceline::quota::{Cost, Dimension, Quota};
use paceline_simulate::{LimitAlgorithm, Provider, Settings};
use parking_lot::Mutex;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    println!("                     answered   429s  fell back  postponed  in flight      took");
    if let [kind, url] = arguments[..] {
        let buses = (0..AGENTS).map(|_| connect(kind, url)).collect::<Result<Vec<_>, _>>()?;
        show("independent", &run(30, &Strategy::Independent).await?);
        show("on this bus", &run(30, &Strategy::OnBuses(buses)).await?);
        return Ok(());
    }
    tokio::time::pause();
    let local: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let on_a_bus = Strategy::OnBuses(vec![local; AGENTS]);
    show("independent", &run(100, &Strategy::Independent).await?);
    show("on a bus", &run(100, &on_a_bus).await?);
    show("fixed shares", &run(100, &Strategy::Shares).await?);
    Ok(())
}

/// A strategy by which the agents share the account.
#[derive(Debug)]
pub(crate) enum Strategy {
    Independent,
    /// The agents, by index, are on these buses.
    OnBuses(Vec<Arc<dyn Bus>>),
    Shares,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    /// Tasks that were done without the model, because no quota was available.
    pub(crate) fell_back: u64,
    /// Tasks that were postponed, because the wait would have been too long.
    pub(crate) postponed: u64,
    /// The maximum number of requests of one agent in flight.
    pub(crate) in_flight: u64,
    pub(crate) took: Duration,
}

/// Runs `tasks` tasks on each agent.
pub(crate) async fn run(tasks: u64, strategy: &Strategy) -> Result<Outcome, Error> {
    let settings =
        Settings::default().with_rpm(ACCOUNT).with_algorithm(LimitAlgorithm::TokenBucket);
    let settings = settings.with_latency(Duration::from_millis(300), Duration::from_millis(900));
    let model = Model { provider: Mutex::new(Provider::new(settings)), tally: Tally::default() };
    let clock = TokioClock::new();
    let limiters = (0..AGENTS).map(|number| limiter(number, strategy, clock));
    let limiters = limiters.collect::<Result<Vec<_>, _>>()?;
    let begin = limiters[0].now();
    try_join_all(limiters.iter().map(|limiter| run_tasks(limiter, &model, tasks))).await?;
    let took = limiters[0].now() - begin;
    let stats = model.provider.lock().stats().total;
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Tally { fell_back, postponed, in_flight } = &model.tally;
    Ok(Outcome {
        answered: stats.admitted,
        refused: stats.refused,
        fell_back: load(fell_back),
        postponed: load(postponed),
        in_flight: load(in_flight),
        took,
    })
}

/// Creates the limiter of an agent and joins it to the agent's bus.
fn limiter(number: usize, strategy: &Strategy, clock: TokioClock) -> Result<Limiter, Error> {
    let rpm = if matches!(strategy, Strategy::Shares) { ACCOUNT / AGENTS as u64 } else { ACCOUNT };
    let quota = Quota::new().rpm(rpm).concurrency(4).with_algorithm(BUCKET);
    let limiter = Limiter::builder().quota(MODEL, quota).clock(clock).build()?;
    if let Strategy::OnBuses(buses) = strategy {
        Agent::join(&limiter, Arc::clone(&buses[number]), format!("agent-{number}"))?;
    }
    Ok(limiter)
}

/// Runs the tasks of an agent, with the concurrency that its limiter allows.
async fn run_tasks(limiter: &Limiter, model: &Model, tasks: u64) -> Result<(), Error> {
    let tasks = stream::iter((0..tasks).map(Ok::<_, Error>));
    tasks.try_for_each_concurrent(8, |task| run_task(limiter, model, task)).await
}

/// Runs a task with one of three priorities.
async fn run_task(limiter: &Limiter, model: &Model, task: u64) -> Result<(), Error> {
    let permit = match task % 10 {
        // Low priority: runs immediately or falls back.
        0 => match limiter.try_acquire(MODEL, &Cost::new()) {
            Ok(permit) => permit,
            Err(_) => {
                model.tally.fell_back.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        },
        // Urgent: waits for up to five seconds. A longer wait is refused immediately, and the task is
        // postponed.
        1 => match limiter.acquire(MODEL, &Cost::new()).max_wait(Duration::from_secs(5)).await {
            Ok(permit) => permit,
            Err(AcquireError::DeadlineExceeded { .. }) => {
                model.tally.postponed.fetch_add(1, Ordering::Relaxed);
                limiter.acquire(MODEL, &Cost::new()).await?
            }
            Err(error) => return Err(error.into()),
        },
        _ => limiter.acquire(MODEL, &Cost::new()).await?,
    };
    send_until_admitted(limiter, model, permit).await
}

/// Sends the request, and retries after each 429 response when the limiter admits it.
async fn send_until_admitted(
    limiter: &Limiter,
    model: &Model,
    mut permit: Permit,
) -> Result<(), Error> {
    loop {
        model.tally.in_flight.fetch_max(in_flight(limiter), Ordering::Relaxed);
        let Some(refusal) = model.send(limiter.now(), &permit).await else { return Ok(()) };
        // Dropped first, since its request is no longer in flight.
        drop(permit);
        limiter.feedback().rate_limited(MODEL, &refusal);
        permit = limiter.acquire(MODEL, &Cost::new()).await?;
    }
}

/// Returns the number of requests of an agent that are in flight.
fn in_flight(limiter: &Limiter) -> u64 {
    let limits = limiter.stats(MODEL).limits;
    let is_concurrency = |dimension: &Dimension| *dimension == Dimension::Concurrency;
    limits.iter().find(|limit| is_concurrency(&limit.dimension)).map_or(0, |limit| limit.held)
}

/// The model that all agents call.
struct Model {
    provider: Mutex<Provider>,
    tally: Tally,
}

/// Counters that no limiter has.
#[derive(Debug, Default)]
struct Tally {
    fell_back: AtomicU64,
    postponed: AtomicU64,
    in_flight: AtomicU64,
}

impl Model {
    /// Sends a request to the model. Returns the refusal, if any.
    async fn send(&self, now: Timestamp, permit: &Permit) -> Option<RateLimited> {
        let reply = self.provider.lock().receive(now.as_nanos(), "/v1/chat/completions", REQUEST);
        tokio::time::sleep(reply.latency).await;
        let seconds = reply.header("retry-after").and_then(|text| text.parse().ok());
        let refusal = RateLimited::new(seconds.map(Duration::from_secs));
        (reply.status == 429).then(|| refusal.sent_at(permit.granted_at()))
    }
}

/// Connects to a bus on a real server.
fn connect(kind: &str, url: &str) -> Result<Arc<dyn Bus>, Error> {
    match (kind, url) {
        #[cfg(feature = "redis")]
        ("--redis", url) => Ok(Arc::new(paceline::cluster::RedisBus::connect(url)?)),
        #[cfg(feature = "nats")]
        ("--nats", url) => Ok(Arc::new(paceline::cluster::NatsBus::connect(url)?)),
        (kind, _) => {
            Err(format!("{kind}: unknown bus; use --redis or --nats with its feature enabled")
                .into())
        }
    }
}

fn show(strategy: &str, outcome: &Outcome) {
    let Outcome { answered, refused, fell_back, postponed, in_flight, took } = outcome;
    println!(
        "{strategy:20} {answered:8} {refused:6} {fell_back:10} {postponed:10} {in_flight:10} {took:9.1?}"
    );
}

const AGENTS: usize = 50;

/// The limit of the account in requests per minute.
const ACCOUNT: u64 = 1_200;

const MODEL: &str = "gpt-4o";

const BUCKET: paceline::quota::Algorithm = paceline::quota::Algorithm::TokenBucket;

const REQUEST: &[u8] =
    br#"{"model": "gpt-4o", "max_tokens": 50, "messages": [{"role": "user", "content": "Go on"}]}"#;
