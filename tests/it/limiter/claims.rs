//! Claims: requests under several keys that are never free together are admitted after finitely many
//! others.

use std::time::Duration;

use paceline::limiter::{Limiter, Priority, TokioClock};
use paceline::quota::{Cost, Quota};
use paceline_testing::full::full_or;

use super::builder;
use super::random::Random;

const KEYS: [&str; 3] = ["a", "b", "c"];

/// Tasks that keep a key in use without a pause, so that its permits end at times of their own.
struct Demand {
    limiter: Limiter,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Demand {
    /// Starts tasks for one key, each with a flow and a priority up to `highest`.
    fn start(&mut self, key: &'static str, tasks: u64, highest: i8, random: &mut Random) {
        for _ in 0..tasks {
            let limiter = self.limiter.clone();
            let priority = Priority::new(highest - random.below(3) as i8);
            let flow = ["x", "y", "z"][random.below(3) as usize];
            let first = Duration::from_millis(random.below(1_000));
            let held = Duration::from_millis(100 + random.below(900));
            self.tasks.push(tokio::spawn(async move {
                tokio::time::sleep(first).await;
                loop {
                    let acquire = limiter.acquire(key, &Cost::new());
                    let permit = acquire.flow(flow).priority(priority).await.unwrap();
                    tokio::time::sleep(held).await;
                    drop(permit);
                }
            }));
        }
    }
}

impl Drop for Demand {
    fn drop(&mut self) {
        self.tasks.iter().for_each(|task| task.abort());
    }
}

/// Requests under several keys, each of which is in constant demand of the same or a lower priority: each
/// is admitted.
async fn check_never_free_together(seed: u64) {
    let mut random = Random(seed);
    let mut builder = builder().clock(TokioClock::new());
    let capacities = KEYS.map(|_| 1 + random.below(2));
    for (key, capacity) in KEYS.into_iter().zip(capacities) {
        builder = builder.quota(key, Quota::new().concurrency(capacity));
    }
    let limiter = builder.build().unwrap();
    let mut demand = Demand { limiter: limiter.clone(), tasks: Vec::new() };
    for (key, capacity) in KEYS.into_iter().zip(capacities) {
        demand.start(key, capacity + 1 + random.below(2), 0, &mut random);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let waiting: Vec<_> = (0..1 + random.below(3))
        .map(|_| {
            let keys = random.some_of(&KEYS);
            let flow = ["x", "m"][random.below(2) as usize];
            let limiter = limiter.clone();
            tokio::spawn(async move {
                limiter.acquire_all(&keys, &Cost::new()).flow(flow).await.map(drop)
            })
        })
        .collect();
    for request in waiting {
        let admitted = tokio::time::timeout(Duration::from_secs(120), request).await;
        assert!(admitted.is_ok(), "a request of seed {seed} is never admitted");
        admitted.unwrap().unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn request_of_keys_never_free_together_is_admitted() {
    // In the first seed, three requests waited for each other's claims.
    for seed in std::iter::once(4_822).chain(0..full_or(100_000, 200)) {
        check_never_free_together(seed).await;
    }
}
