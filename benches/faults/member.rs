//! A process that shares the limit: some clients wait for permits, and print each grant and its end.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tollgate::Limiter;
use tollgate::cluster::{OnFailure, Shared, SharingMode};
use tollgate::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Window};

/// Runs until standard input is closed. `spec` is the URL, the mode, the algorithm, the amount, the number of
/// clients and a seed, with spaces in between.
pub(crate) fn run(spec: &str) {
    let parts: Vec<&str> = spec.split(' ').collect();
    let &[url, mode, algorithm, amount, clients, seed] = &parts[..] else { panic!("{spec}") };
    let mode = if mode == "lease" { SharingMode::Lease } else { SharingMode::Exact };
    let number = |text: &str| text.parse::<u64>().unwrap();
    let quota = quota(algorithm, number(amount));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shared = Shared::builder(url, "faults").on_failure(OnFailure::Closed).mode(mode);
    let shared = shared.lease(Duration::from_millis(500)).reservation_ttl(Duration::from_secs(1));
    let builder = Limiter::builder().margin(Margin::NONE).quota("k", quota);
    let limiter = builder.backend(shared.connect().unwrap()).build().unwrap();
    runtime.block_on(async {
        let stopped = Arc::new(AtomicBool::new(false));
        let start = |client| {
            let is_stopped = Arc::clone(&stopped);
            tokio::spawn(work(limiter.clone(), client, number(seed) + client, is_stopped))
        };
        let clients: Vec<_> = (0..number(clients)).map(start).collect();
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().count());
        let _ = ended.await;
        // A permit that is dropped with its client would have no end in the ledger.
        stopped.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        limiter.close().await;
    });
}

fn quota(algorithm: &str, amount: u64) -> Quota {
    let second = Window::SECOND;
    let limit = match algorithm {
        "concurrency" => return Quota::new().concurrency(amount),
        _ => Limit::new(Dimension::Requests, amount, second).unwrap(),
    };
    Quota::new().limit(limit.with_algorithm(match algorithm {
        "sliding_window" => Algorithm::SlidingWindow,
        "clock_window" => Algorithm::ClockWindow,
        _ => Algorithm::TokenBucket,
    }))
}

async fn work(limiter: Limiter, client: u64, seed: u64, is_stopped: Arc<AtomicBool>) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while !is_stopped.load(Ordering::Relaxed) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (asked, cost) = (now(), 1 + random % 3);
        let Ok(permit) = limiter.acquire("k", &Cost::new().requests(cost)).await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        print(&format!("grant {client} {asked} {} {cost}", now()));
        tokio::time::sleep(Duration::from_millis(2 + random % 8)).await;
        print(&format!("end {client} {}", now()));
        permit.settle(&Cost::new().requests(cost));
    }
}

/// Prints a line for the parent, apart from the output of a test harness.
fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may have ended.
    let _ = writeln!(out, "\n#{line}").and_then(|()| out.flush());
}

pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_nanos()).unwrap()
}
