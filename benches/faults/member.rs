//! A process that shares the limit: some clients wait for permits, and print each grant and its end.

use std::io::{BufRead, Write};
use std::time::{Duration, SystemTime};

use paceline::Limiter;
use paceline::cluster::{OnFailure, Shared, SharingMode};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Window};

/// Runs until standard input is closed. `spec` is the URL, the mode, the algorithm, the amount, the number of
/// clients, the lifetime of reservations in seconds and a seed, with spaces in between. One more client has a request in flight for seconds.
pub(crate) fn run(spec: &str) {
    let parts: Vec<&str> = spec.split(' ').collect();
    let &[url, mode, algorithm, amount, clients, ttl, seed] = &parts[..] else { panic!("{spec}") };
    let mode = if mode == "lease" { SharingMode::Lease } else { SharingMode::Exact };
    let number = |text: &str| text.parse::<u64>().unwrap();
    let quota = quota(algorithm, number(amount));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shared = Shared::builder(url, ACCOUNT).on_failure(OnFailure::Closed).mode(mode);
    let ttl = Duration::from_secs(number(ttl));
    let shared = shared.lease(Duration::from_millis(500)).reservation_ttl(ttl);
    // An answer that is late is lost: what it has done can count twice after a loss of data.
    let shared = shared.timeout(Duration::from_millis(250));
    let builder = Limiter::builder().margin(Margin::NONE).quota("k", quota);
    let limiter = builder.backend(shared.connect().unwrap()).build().unwrap();
    runtime.block_on(async {
        let (stop, stopped) = tokio::sync::watch::channel(());
        let mut working = tokio::task::JoinSet::new();
        for client in 0..=number(clients) {
            let millis = if client == number(clients) { 3_000 } else { 2 };
            let seed = number(seed) + client;
            working.spawn(work(limiter.clone(), client, seed, millis, stopped.clone()));
        }
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().count());
        let _ = ended.await;
        // Each permit has an end in the record, and is settled.
        drop(stop);
        working.join_all().await;
        limiter.close().await;
    });
}

/// Returns the usage of the day in a server, which has no windows that end meanwhile.
pub(crate) fn used(url: &str, algorithm: &str, amount: u64) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shared = Shared::builder(url, ACCOUNT).timeout(Duration::from_secs(5)).connect().unwrap();
    let builder = Limiter::builder().margin(Margin::NONE).quota("k", quota(algorithm, amount));
    let limiter = builder.backend(shared).build().unwrap();
    runtime.block_on(limiter.state().refresh(&["k"]));
    let stats = limiter.stats("k");
    let of_day = stats.limits.iter().find(|limit| limit.limit == OF_DAY);
    of_day.map_or(0, |limit| limit.used + limit.held)
}

fn quota(algorithm: &str, amount: u64) -> Quota {
    let day = Limit::new(Dimension::Tokens, OF_DAY, Window::DAY).unwrap();
    let day = Quota::new().limit(day.with_algorithm(Algorithm::SlidingWindow));
    let limit = match algorithm {
        "concurrency" => return day.concurrency(amount),
        _ => Limit::new(Dimension::Tokens, amount, Window::SECOND).unwrap(),
    };
    day.limit(limit.with_algorithm(match algorithm {
        "sliding_window" => Algorithm::SlidingWindow,
        "clock_window" => Algorithm::ClockWindow,
        _ => Algorithm::TokenBucket,
    }))
}

/// Makes requests one after another, each in flight for some milliseconds more than `millis`, until `stopped`.
async fn work(
    limiter: Limiter,
    client: u64,
    seed: u64,
    millis: u64,
    mut stopped: tokio::sync::watch::Receiver<()>,
) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while stopped.has_changed().is_ok() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (asked, cost) = (now(), 1 + random % MAX_COST);
        let reserved = Cost::new().tokens(cost);
        let permit = tokio::select! {
            permit = limiter.acquire("k", &reserved) => permit,
            _ = stopped.changed() => return,
        };
        let Ok(permit) = permit else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        print(&format!("grant {client} {asked} {} {cost}", now()));
        let in_flight = tokio::time::sleep(Duration::from_millis(millis + random % 8));
        tokio::select! {
            () = in_flight => {}
            _ = stopped.changed() => {}
        }
        let used = 1 + (random >> 32) % cost;
        print(&format!("end {client} {} {used}", now()));
        permit.settle(&Cost::new().tokens(used));
    }
}

/// The amount of the day, which is never used up.
const OF_DAY: u64 = 1_000_000;
/// The maximum amount that a request reserves.
pub(crate) const MAX_COST: u64 = 3;
const ACCOUNT: &str = "faults";

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
