//! A chat and a batch job on one quota, and a greedy tenant.
//!
//! ```sh
//! cargo run --example priorities
//! ```
//!
//! The model accepts 1,000 tokens per second. A batch job has 200 requests waiting from the start.
//! Meanwhile two tenants chat: each sends a request three seconds after its last one was sent. After ten
//! seconds a third tenant sends 60 requests at the same time.
//!
//! First, all requests go in order of arrival. Then a policy puts the chat before the batch job and shares
//! the limit between tenants. The model is equally busy in both cases.
//!
//! The time is virtual, so that minutes pass immediately.

use std::time::Duration;

use futures_util::future::try_join_all;
use paceline::limiter::{AcquireError, Limiter, Priority, TokioClock, WaitPolicy};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tokio::time::pause();
    show("in order of arrival", &run(WaitPolicy::new()).await?);
    let policy = WaitPolicy::new().priority("batch", Priority::BATCH).fair_by("tenant");
    show("chat before batch, tenants in equal shares", &run(policy).await?);
    Ok(())
}

/// The waits of a sender's requests.
#[derive(Debug)]
pub(crate) struct Waits {
    pub(crate) sender: &'static str,
    pub(crate) waits: Vec<Duration>,
    /// The time from the start of the run until its last request was sent.
    pub(crate) took: Duration,
}

/// Runs all senders on one quota with this policy.
pub(crate) async fn run(policy: WaitPolicy) -> Result<[Waits; 4], Error> {
    let tokens = Limit::per_second(Dimension::Tokens, 1_000);
    let quota = Quota::new().limit(tokens).with_algorithm(Algorithm::TokenBucket);
    let builder = Limiter::builder().quota(MODEL, quota).wait_policy(policy);
    let limiter = builder.clock(TokioClock::new()).build()?;
    let (anna, ben, greedy, batch) = tokio::try_join!(
        chat(&limiter, "tenant:anna"),
        chat(&limiter, "tenant:ben"),
        flood(&limiter, "tenant:greedy"),
        send_all(&limiter, "batch", 200, 800),
    )?;
    Ok([anna, ben, greedy, batch])
}

/// Sends ten requests, each three seconds after the last one.
async fn chat(limiter: &Limiter, sender: &'static str) -> Result<Waits, AcquireError> {
    let (begin, mut waits) = (limiter.now(), Vec::new());
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        waits.push(send(limiter, sender, 400).await?);
    }
    Ok(Waits { sender, waits, took: limiter.now() - begin })
}

/// Sends 60 requests at the same time, after ten seconds.
async fn flood(limiter: &Limiter, sender: &'static str) -> Result<Waits, AcquireError> {
    tokio::time::sleep(Duration::from_secs(10)).await;
    send_all(limiter, sender, 60, 400).await
}

/// Sends a number of requests at the same time.
async fn send_all(
    limiter: &Limiter,
    sender: &'static str,
    requests: usize,
    tokens: u64,
) -> Result<Waits, AcquireError> {
    let begin = limiter.now();
    let waits = try_join_all((0..requests).map(|_| send(limiter, sender, tokens))).await?;
    Ok(Waits { sender, waits, took: limiter.now() - begin })
}

/// Sends a request when the limiter admits it. Returns the wait.
async fn send(limiter: &Limiter, sender: &str, tokens: u64) -> Result<Duration, AcquireError> {
    let arrived_at = limiter.now();
    // The second key has the quota. The first one names the sender, for the policy.
    let permit = limiter.acquire_all(&[sender, MODEL], &Cost::new().tokens(tokens)).await?;
    // A program sends the request here, and settles the permit with the usage in the response.
    Ok(permit.granted_at() - arrived_at)
}

fn show(policy: &str, senders: &[Waits]) {
    println!("{policy}:");
    println!("{:20} {:>8} {:>12} {:>12} {:>10}", "", "requests", "mean wait", "longest", "took");
    for Waits { sender, waits, took } in senders {
        let mean = waits.iter().sum::<Duration>() / waits.len() as u32;
        let longest = waits.iter().max().copied().unwrap_or_default();
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        println!(
            "{sender:20} {:>8} {:>12} {:>12} {:>10}",
            waits.len(),
            seconds(mean),
            seconds(longest),
            seconds(*took)
        );
    }
    println!();
}

const MODEL: &str = "gpt-4o";
