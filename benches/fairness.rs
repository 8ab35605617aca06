//! Fair shares, priorities, and the operations on a queue: `cargo bench --bench fairness`.
//!
//! - Three tenants with the weights 1, 1 and 2 share one limit. One has 1,000 requests waiting.
//! - Interactive requests beside a batch job that never ends.
//! - A queue with 10,000 waiters: insertion, grant and cancellation.
//!
//! The first two run in virtual time and fail if a target is missed. The third measures wall-clock time.

#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use paceline::limiter::{Limiter, Priority, TokioClock, WaitPolicy};
use paceline::quota::{Algorithm, Cost, Quota};
use queue::{KEY, Times};

fn main() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        shares().await;
        for priority in [Priority::BATCH, Priority::INTERACTIVE] {
            interactive_beside_batch(priority).await;
        }
    });
    // The tasks of a runtime have a budget of polls.
    operations();
}

/// The limit of the model, in tokens per second.
const RATE: u64 = 10_000;

/// The tokens of the largest request. The smallest has a twentieth of them.
const LARGEST: u64 = 2_000;

/// Measures the shares of three tenants while all of them have requests waiting.
async fn shares() {
    let policy = WaitPolicy::new().fair_by("tenant").weight("tenant:gold", 2);
    let limiter = limiter(policy);
    let tenants =
        [("tenant:greedy", 1_000, 25.0), ("tenant:plain", 50, 25.0), ("tenant:gold", 50, 50.0)];
    let granted = tenants.map(|(tenant, waiting, _)| {
        let granted = Arc::new(AtomicU64::new(0));
        for task in 0..waiting {
            let (limiter, granted) = (limiter.clone(), Arc::clone(&granted));
            tokio::spawn(async move {
                let mut random = Random(task);
                loop {
                    let tokens = random.tokens();
                    let permit = limiter.acquire_all(&[tenant, KEY], &Cost::new().tokens(tokens));
                    drop(permit.await.expect("no deadline"));
                    granted.fetch_add(tokens, Ordering::Relaxed);
                }
            });
        }
        granted
    });
    let load = || granted.each_ref().map(|granted| granted.load(Ordering::Relaxed));
    tokio::time::sleep(WARM_UP).await;
    let before = load();
    tokio::time::sleep(MEASURED).await;
    let after = load();
    let served: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    let total: u64 = served.iter().sum();
    println!(
        "{:<40} {:>10} {:>10} {:>10}",
        "tenant, requests waiting", "largest", "share", "target"
    );
    for (&served, (tenant, waiting, target)) in served.iter().zip(tenants) {
        let share = served as f64 * 100.0 / total as f64;
        let name = format!("{tenant}, {waiting}");
        println!("{name:<40} {:>10} {share:>8.2} % {target:>8.2} %", served / LARGEST);
        assert!(served >= 100 * LARGEST, "too short a measurement");
        assert!((share - target).abs() <= 1.0, "{tenant}: the share is {share:.2} %");
    }
    let utilization = total as f64 / (RATE as f64 * MEASURED.as_secs_f64());
    println!("utilization {utilization:.4} (target .98)\n");
    assert!(utilization >= 0.98);
}

/// Measures the waits of requests with this priority, one at a time, beside a batch job of 100 tasks.
async fn interactive_beside_batch(priority: Priority) {
    let limiter = limiter(WaitPolicy::new());
    let job = (0..100).map(|task| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let mut random = Random(task);
            loop {
                let cost = Cost::new().tokens(random.tokens());
                drop(
                    limiter
                        .acquire(KEY, &cost)
                        .priority(Priority::BATCH)
                        .await
                        .expect("no deadline"),
                );
            }
        })
    });
    let job: Vec<_> = job.collect();
    tokio::time::sleep(WARM_UP).await;
    let (mut random, mut waits) = (Random(u64::MAX), Vec::new());
    for _ in 0..2_000 {
        tokio::time::sleep(Duration::from_millis(random.next() % 2_000)).await;
        let (cost, arrived_at) = (Cost::new().tokens(random.tokens()), limiter.now());
        drop(limiter.acquire(KEY, &cost).priority(priority).await.expect("no deadline"));
        waits.push(limiter.now() - arrived_at);
    }
    job.iter().for_each(tokio::task::JoinHandle::abort);
    waits.sort();
    let quantile = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize];
    let (median, p99, longest) = (quantile(0.5), quantile(0.99), quantile(1.0));
    println!("wait of a request beside a batch job, priority {priority}:");
    println!("median {median:.1?}, p99 {p99:.1?}, longest {longest:.1?}");
    if priority == Priority::INTERACTIVE {
        let refill = Duration::from_secs_f64(LARGEST as f64 / RATE as f64);
        println!("target of the p99: {refill:?}, the refill of the largest request\n");
        assert!(p99 <= refill);
    }
}

/// Measures the operations on a queue without and with flows.
fn operations() {
    let flows = ["tenant:a", "tenant:b", "tenant:c"];
    println!(
        "{:<40} {:>10} {:>10} {:>12}",
        "a queue of 10,000, ns", "insertion", "grant", "cancellation"
    );
    show("one flow", queue::measure(|acquire, _| acquire));
    show("three flows", queue::measure(|acquire, number| acquire.flow(flows[number % 3])));
}

fn show(name: &str, times: Times) {
    let Times { insertion, grant, cancellation } = times;
    println!("{name:<40} {insertion:>10.0} {grant:>10.0} {cancellation:>12.0}");
}

fn limiter(policy: WaitPolicy) -> Limiter {
    let quota = Quota::new().tpm(RATE * 60).with_algorithm(Algorithm::TokenBucket);
    let builder = Limiter::builder().quota(KEY, quota).wait_policy(policy);
    builder.clock(TokioClock::new()).build().expect("a valid quota")
}

/// The time until the first tokens of a full bucket are used.
const WARM_UP: Duration = Duration::from_secs(90);

const MEASURED: Duration = Duration::from_secs(200);

/// A generator of random numbers (SplitMix64), the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns the tokens of the next request.
    fn tokens(&mut self) -> u64 {
        LARGEST / 20 + self.next() % (LARGEST - LARGEST / 20 + 1)
    }
}
