//! A swarm: fifty agents that share one account, each with a limiter of its own.
//!
//! ```sh
//! cargo run --example agent_swarm
//! cargo run --features redis --example agent_swarm -- --redis redis://127.0.0.1:6379
//! cargo run --features nats --example agent_swarm -- --nats nats://127.0.0.1:4222
//! ```
//!
//! The account allows 1,200 requests a minute, and every agent could use all of that. Each does its
//! tasks four at a time, in one of three ways:
//!
//! - for itself: it learns of the others only by its own 429s;
//! - on a bus: a 429 of one reduces and pauses all;
//! - each with its share: a fiftieth of the limit, which needs no bus, and no 429 comes; but what one
//!   agent doesn't need, no other can use. (A limit that all take together is
//!   `tollgate::cluster::Shared`.)
//!
//! Time is virtual, so that minutes pass at once; over a real bus it is real, with fewer tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::{TryStreamExt, stream};
use parking_lot::Mutex;
use tollgate::Timestamp;
use tollgate::cluster::{Agent, Bus, LocalBus};
use tollgate::limiter::{AcquireError, Limiter, Permit, RateLimited, TokioClock};
use tollgate::quota::{Cost, Dimension, Quota};
use tollgate_simulate::{LimitAlgorithm, Provider, Settings};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    println!("                     answered   429s  fell back  put off  in flight      took");
    if let [kind, url] = arguments[..] {
        let buses = (0..AGENTS).map(|_| connect(kind, url)).collect::<Result<Vec<_>, _>>()?;
        show("each for itself", &run(30, &Way::ForItself).await?);
        show("on this bus", &run(30, &Way::OnBuses(buses)).await?);
        return Ok(());
    }
    tokio::time::pause();
    let local: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let on_a_bus = Way::OnBuses(vec![local; AGENTS]);
    show("each for itself", &run(100, &Way::ForItself).await?);
    show("on a bus", &run(100, &on_a_bus).await?);
    show("each with its share", &run(100, &Way::Shares).await?);
    Ok(())
}

/// How the agents go about it.
#[derive(Debug)]
pub(crate) enum Way {
    ForItself,
    /// The bus of each.
    OnBuses(Vec<Arc<dyn Bus>>),
    Shares,
}

/// How it went.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    /// Tasks that were done in another way, because nothing was free.
    pub(crate) fell_back: u64,
    /// Tasks that were put off, because they would have had to wait for too long.
    pub(crate) put_off: u64,
    /// The most requests of one agent that were in flight at once.
    pub(crate) in_flight: u64,
    pub(crate) took: Duration,
}

/// Has each agent do so many tasks.
pub(crate) async fn run(tasks: u64, way: &Way) -> Result<Outcome, Error> {
    let settings =
        Settings::default().with_rpm(ACCOUNT).with_algorithm(LimitAlgorithm::TokenBucket);
    let settings = settings.with_latency(Duration::from_millis(300), Duration::from_millis(900));
    let model = Model { provider: Mutex::new(Provider::new(settings)), tally: Tally::default() };
    let clock = TokioClock::new();
    let limiters = (0..AGENTS).map(|number| limiter(number, way, clock));
    let limiters = limiters.collect::<Result<Vec<_>, _>>()?;
    let begin = limiters[0].now();
    try_join_all(limiters.iter().map(|limiter| work(limiter, &model, tasks))).await?;
    let took = limiters[0].now() - begin;
    let stats = model.provider.lock().stats().total;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Tally { fell_back, put_off, in_flight } = &model.tally;
    Ok(Outcome {
        answered: stats.admitted,
        refused: stats.refused,
        fell_back: of(fell_back),
        put_off: of(put_off),
        in_flight: of(in_flight),
        took,
    })
}

/// The limiter of an agent, joined to its bus.
fn limiter(number: usize, way: &Way, clock: TokioClock) -> Result<Limiter, Error> {
    let rpm = if matches!(way, Way::Shares) { ACCOUNT / AGENTS as u64 } else { ACCOUNT };
    let quota = Quota::new().rpm(rpm).concurrency(4).with_algorithm(BUCKET);
    let limiter = Limiter::builder().quota(MODEL, quota).clock(clock).build()?;
    if let Way::OnBuses(buses) = way {
        Agent::join(&limiter, Arc::clone(&buses[number]), format!("agent-{number}"))?;
    }
    Ok(limiter)
}

/// What an agent does: task after task, as many at once as its limiter lets in.
async fn work(limiter: &Limiter, model: &Model, tasks: u64) -> Result<(), Error> {
    let tasks = stream::iter((0..tasks).map(Ok::<_, Error>));
    tasks.try_for_each_concurrent(8, |task| one(limiter, model, task)).await
}

/// One task, in one of three manners.
async fn one(limiter: &Limiter, model: &Model, task: u64) -> Result<(), Error> {
    let permit = match task % 10 {
        // Not important: at once, or in another way.
        0 => match limiter.try_acquire(MODEL, &Cost::new()) {
            Ok(permit) => permit,
            Err(_) => {
                model.tally.fell_back.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        },
        // Urgent: within five seconds. If not, it is refused at once where that is known, and put off.
        1 => match limiter.acquire(MODEL, &Cost::new()).max_wait(Duration::from_secs(5)).await {
            Ok(permit) => permit,
            Err(AcquireError::DeadlineExceeded { .. }) => {
                model.tally.put_off.fetch_add(1, Ordering::Relaxed);
                limiter.acquire(MODEL, &Cost::new()).await?
            }
            Err(error) => return Err(error.into()),
        },
        _ => limiter.acquire(MODEL, &Cost::new()).await?,
    };
    until_answered(limiter, model, permit).await
}

/// Sends, and after each 429 again, when the limiter says so.
async fn until_answered(limiter: &Limiter, model: &Model, mut permit: Permit) -> Result<(), Error> {
    loop {
        model.tally.in_flight.fetch_max(in_flight(limiter), Ordering::Relaxed);
        let Some(refusal) = model.ask(limiter.now(), &permit).await else { return Ok(()) };
        // The permit ends first: its request isn't in flight any more.
        drop(permit);
        limiter.feedback().rate_limited(MODEL, &refusal);
        permit = limiter.acquire(MODEL, &Cost::new()).await?;
    }
}

/// Requests of this agent that are in flight.
fn in_flight(limiter: &Limiter) -> u64 {
    let limits = limiter.stats(MODEL).limits;
    let of_concurrency = |dimension: &Dimension| *dimension == Dimension::Concurrency;
    limits.iter().find(|limit| of_concurrency(&limit.dimension)).map_or(0, |limit| limit.held)
}

/// The model that all agents ask.
struct Model {
    provider: Mutex<Provider>,
    tally: Tally,
}

/// What no limiter counts.
#[derive(Debug, Default)]
struct Tally {
    fell_back: AtomicU64,
    put_off: AtomicU64,
    in_flight: AtomicU64,
}

impl Model {
    /// Says how it refused, if it did.
    async fn ask(&self, now: Timestamp, permit: &Permit) -> Option<RateLimited> {
        let reply = self.provider.lock().receive(now.as_nanos(), "/v1/chat/completions", REQUEST);
        tokio::time::sleep(reply.latency).await;
        let seconds = reply.header("retry-after").and_then(|text| text.parse().ok());
        let refusal = RateLimited::new(seconds.map(Duration::from_secs));
        (reply.status == 429).then(|| refusal.sent_at(permit.granted_at()))
    }
}

/// A bus over a real server.
fn connect(kind: &str, url: &str) -> Result<Arc<dyn Bus>, Error> {
    match (kind, url) {
        #[cfg(feature = "redis")]
        ("--redis", url) => Ok(Arc::new(tollgate::cluster::RedisBus::connect(url)?)),
        #[cfg(feature = "nats")]
        ("--nats", url) => Ok(Arc::new(tollgate::cluster::NatsBus::connect(url)?)),
        (kind, _) => Err(format!("this build has no bus by {kind}").into()),
    }
}

fn show(way: &str, outcome: &Outcome) {
    let Outcome { answered, refused, fell_back, put_off, in_flight, took } = outcome;
    println!(
        "{way:20} {answered:8} {refused:6} {fell_back:10} {put_off:8} {in_flight:10} {took:9.1?}"
    );
}

const AGENTS: usize = 50;

/// Requests a minute, of all agents together.
const ACCOUNT: u64 = 1_200;

const MODEL: &str = "gpt-4o";

const BUCKET: tollgate::quota::Algorithm = tollgate::quota::Algorithm::TokenBucket;

const REQUEST: &[u8] =
    br#"{"model": "gpt-4o", "max_tokens": 50, "messages": [{"role": "user", "content": "Go on"}]}"#;
