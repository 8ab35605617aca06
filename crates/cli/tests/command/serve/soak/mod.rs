//! A soak test: clients request, wait, cancel and disconnect; the server's memory stays flat, and
//! every grant is accounted for.
//!
//! Four seconds and 400 keys, or two minutes and ten thousand keys in a full run. No assertion
//! depends on speed: an hourly limit is counted exactly from outside, and a limit per second by the
//! possible times between request and response.

mod client;
mod key;

use std::sync::Arc;
use std::time::Duration;

use paceline::limiter::{Clock, SystemClock};

use super::process::Served;
use client::Client;
use key::{Key, Kind};
use paceline_testing::full::full_or;
use paceline_testing::wire::Wire;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_keeps_memory_flat_and_limits_exact() {
    let seconds = full_or(120, 4);
    let keys = Arc::new(Key::all((seconds * 100).min(10_000)));
    let mut server = Served::start(CONFIG);
    let clock = Arc::new(SystemClock::new());
    let end = clock.now() + Duration::from_secs(seconds);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|seed| Client::new(server.addr(), keys.clone(), clock.clone(), seed))
        .map(|client| tokio::spawn(client.run_until(end)))
        .collect();
    let memory = memory(&mut server, Duration::from_secs(seconds)).await;
    for client in clients {
        client.await.expect("the client task does not panic");
    }
    wait_until_queues_are_empty(&server, &keys).await;
    exhaust_limits(&server, &keys).await;
    report(&keys, &memory, seconds);
    for key in keys.iter() {
        key.check();
    }
    check_debug(&server, &keys).await;
    assert!(server.is_running());
    let [_, middle, last] = memory;
    assert!(last <= middle + middle / 10 + ALLOCATOR_SLACK, "{last} bytes, after {middle}");
}

/// Returns the median memory of the server in each third of the run.
async fn memory(server: &mut Served, run: Duration) -> [u64; 3] {
    let mut ticks = tokio::time::interval(run / 90);
    let mut medians = [0; 3];
    for median in &mut medians {
        let mut third = Vec::new();
        for _ in 0..30 {
            ticks.tick().await;
            third.push(server.memory());
        }
        third.sort_unstable();
        *median = third[third.len() / 2];
    }
    medians
}

/// Waits until all queues are empty.
async fn wait_until_queues_are_empty(server: &Served, keys: &[Key]) {
    let mut wire = Wire::connect(server.addr()).await.expect("a connection");
    for key in keys {
        while debug(&mut wire, key).await["NumWaiting"].as_u64().is_some_and(|waiting| waiting > 0)
        {
            tokio::task::yield_now().await;
        }
    }
}

/// Requests every hourly key until it is exhausted.
async fn exhaust_limits(server: &Served, keys: &Arc<Vec<Key>>) {
    let tasks: Vec<_> = (0..SWEEPERS)
        .map(|first| {
            let (keys, addr) = (keys.clone(), server.addr());
            tokio::spawn(async move {
                let mut wire = Wire::connect(addr).await.expect("a connection");
                for key in keys.iter().skip(first).step_by(SWEEPERS) {
                    while key.kind != Kind::Brisk && key.request(&mut wire).await.is_some() {}
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("the task does not panic");
    }
}

/// Checks that the server's grants equal the received ones.
async fn check_debug(server: &Served, keys: &[Key]) {
    let mut wire = Wire::connect(server.addr()).await.expect("a connection");
    for key in keys.iter().filter(|key| key.kind != Kind::Brisk) {
        let debug = debug(&mut wire, key).await;
        assert_eq!(debug["NumApprovedThisWindow"], Kind::PER_HOUR, "{}: {debug}", key.name);
    }
}

async fn debug(wire: &mut Wire, key: &Key) -> serde_json::Value {
    let answer = wire.request("GET", &format!("/debug/{}", key.name)).await.expect("a response");
    serde_json::from_str(&answer.body).unwrap_or_default()
}

fn report(keys: &[Key], memory: &[u64; 3], seconds: u64) {
    let sum = |count: fn(&Key) -> u64| keys.iter().map(count).sum::<u64>();
    println!(
        "{seconds} s, {} keys, {CLIENTS} clients: {} granted, {} released, {} refused, {} disconnected; \
         median memory of each third, bytes: {memory:?}",
        keys.len(),
        sum(Key::granted),
        sum(Key::released),
        sum(Key::refused),
        sum(Key::vanished),
    );
}

const CLIENTS: u64 = 200;
const SWEEPERS: usize = 32;

/// The memory that an allocator may retain.
const ALLOCATOR_SLACK: u64 = 4 << 20;

/// The limits of each [`Kind`].
const CONFIG: &str = r#"
serve:
  max_requests: 5
  window_millis: 3600000
  max_requests_in_queue: 5
  keys:
    - {key_pattern: "brisk-.*", key_pattern_is_regex: true, max_requests_per_window: 10, window_millis: 1000, max_requests_in_queue: 20}
"#;
