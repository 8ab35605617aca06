//! A quota of three buckets shared over Redis, compared with a script of one bucket:
//! `cargo bench --bench shared --features redis`. Starts a separate `redis-server`.
//!
//! - Server time per call at 0, 1 and 5 ms of round trip: total CPU time, and the part of the script (`INFO cpu`,
//!   `INFO commandstats`). The comparisons are INCRBY, and a GCRA script of one bucket (GET, SET with an
//!   expiry, the server's TIME), which doesn't settle and isn't idempotent.
//! - Load of the server by processes that wait for a limit or for a place of a concurrency limit, and by
//!   the renewals of leases.
//! - Decisions per second of one process at 0, 1 and 5 ms of round trip: exact mode with one key, with 24
//!   clients on it, and with 64 keys, leases on one thread and on two, and a local limiter.

#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

mod delay;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use paceline::Limiter;
use paceline::cluster::{OnFailure, Shared, SharingMode};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Window};
use redis::aio::MultiplexedConnection;
use redis::{Script, cmd};

use server::{Server, ServerTime};

#[tokio::main]
async fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let server = Server::start();
    let mut redis = server.connect().await;
    for (millis, calls) in ROUND_TRIPS {
        let url = server.url_at(Duration::from_millis(millis));
        println!(
            "server CPU time per call (total, script) at {millis} ms, {calls} decisions in sequence"
        );
        print_server_times(&mut redis, &url, calls).await;
    }
    println!("load of the server (calls per second, script per call)");
    print_waiters(&mut redis, &server, 256, Quota::new().rpd(1), "a limit").await;
    print_waiters(&mut redis, &server, 16, Quota::new().concurrency(1), "a place").await;
    for (processes, keys) in [(1, 100), (1, 2_000), (10, 200)] {
        print_lease_load(&mut redis, &server, keys, processes).await;
    }
    for mode in [SharingMode::Exact, SharingMode::Lease] {
        print_fleet_load(&mut redis, &server, mode).await;
    }
    println!("decisions per second");
    print_rate("local limiter, one key", || decide_locally("k"), 1).await;
    for (millis, _) in ROUND_TRIPS {
        println!("at {millis} ms");
        print_rates(&server, Duration::from_millis(millis)).await;
    }
}

/// Prints the CPU time of the server per call of our script and of the comparisons.
async fn print_server_times(redis: &mut MultiplexedConnection, url: &str, calls: u64) {
    let client = redis::Client::open(url).unwrap();
    let delayed = client.get_multiplexed_async_connection().await.unwrap();
    measure_gcra(redis, &delayed, calls).await;
    print_server_time(redis, "INCRBY", calls, || async {
        let mut redis = delayed.clone();
        let _: u64 = cmd("INCRBY").arg("n").arg(1).query_async(&mut redis).await.unwrap();
    })
    .await;
    let settled = Cost::new().tokens(90);
    let sliding = |limit: Limit| limit.with_algorithm(Algorithm::SlidingWindow);
    let requests = sliding(bucket(Dimension::Requests, 60_000_000, Window::MINUTE));
    let tokens = sliding(bucket(Dimension::Tokens, 6_000_000_000, Window::MINUTE));
    let both = Quota::new().limit(requests.clone()).limit(tokens.clone());
    let mixed =
        two_buckets().limit(sliding(bucket(Dimension::InputTokens, 6_000_000_000, Window::MINUTE)));
    for (name, quota, keys) in [
        ("reserve three buckets, settle", quota(), &["k"][..]),
        ("one sliding window", Quota::new().limit(requests), &["k"]),
        ("two sliding windows", both, &["k"]),
        ("three keys of two buckets", two_buckets(), &["a", "b", "c"]),
        ("three keys, sliding, and places", mixed.concurrency(1_000), &["a", "b", "c"]),
    ] {
        let exact = limiter(url, SharingMode::Exact, &format!("{calls} {name}"), quota);
        exact.acquire_all(keys, &cost()).await.unwrap().settle(&settled);
        print_server_time(redis, name, calls, || async {
            exact.acquire_all(keys, &cost()).await.unwrap().settle(&settled);
        })
        .await;
    }
}

/// Prints the decisions per second at a round trip to the server.
async fn print_rates(server: &Server, round_trip: Duration) {
    let millis = round_trip.as_millis();
    let url = server.url_at(round_trip);
    let decisions = if millis == 0 { 5_000 } else { 500 };
    let exact = limiter(&url, SharingMode::Exact, &format!("exact-{millis}"), quota());
    exact.acquire("warm", &cost()).await.unwrap().settle(&cost());
    let on_keys = |keys, each| decide_on_keys(exact.clone(), keys, each);
    print_rate("exact, one key", || on_keys(1, decisions), 1).await;
    print_rate("exact, one key, 24 clients", || decide_concurrently(&exact, 24, decisions), 1)
        .await;
    print_rate("exact, 64 keys", || on_keys(64, decisions / 10), 1).await;
    let leased = limiter(&url, SharingMode::Lease, &format!("lease-{millis}"), quota());
    decide_on_one_key(leased.clone(), 1_000).await;
    print_rate("leases, one key", || decide_on_one_key(leased.clone(), 500_000), 1).await;
    print_rate("leases, one key, two threads", || decide_on_two_threads(&leased), 1).await;
}

/// Prints the load by processes that wait for a limit of one, which another one has used.
async fn print_waiters(
    redis: &mut MultiplexedConnection,
    server: &Server,
    processes: usize,
    quota: Quota,
    name: &str,
) {
    let connect = || limiter(&server.url(), SharingMode::Exact, name, quota.clone());
    let holder = connect();
    let _held = holder.acquire("k", &Cost::new()).await.unwrap();
    let waiting: Vec<_> = (0..processes)
        .map(|_| {
            let waiter = connect();
            tokio::spawn(async move { drop(waiter.acquire("k", &Cost::new()).await) })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    print_load(redis, &format!("{processes} processes wait for {name}")).await;
    waiting.into_iter().for_each(|task| task.abort());
}

/// Prints the load by processes that hold leases of this many keys in steady use.
async fn print_lease_load(
    redis: &mut MultiplexedConnection,
    server: &Server,
    keys: u64,
    processes: u64,
) {
    let account = format!("leases of {keys} keys");
    let mut users = Vec::new();
    for _ in 0..processes {
        let leased = limiter(&server.url(), SharingMode::Lease, &account, two_buckets());
        users.push(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(50));
            loop {
                ticks.tick().await;
                for key in 0..keys {
                    drop(leased.acquire(&format!("k{key}"), &cost()).await.unwrap());
                }
            }
        }));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let script = print_load(redis, &format!("{processes} processes, leases of {keys} keys")).await;
    // Each renewal is one write.
    let renewals = ServerTime::read(redis).await.writes as f64;
    let rate = renewals / SECONDS as f64;
    println!("  {:<36}{rate:>8.0}/s{:>8.1} us", "its renewals of one key", script / renewals);
    users.into_iter().for_each(|user| user.abort());
}

/// Prints the load by 100 processes that send 10,000 requests per second, spread over 1,000 keys.
async fn print_fleet_load(redis: &mut MultiplexedConnection, server: &Server, mode: SharingMode) {
    let account = format!("fleet in {mode:?}");
    let sent = Arc::new(AtomicU64::new(0));
    let mut users = Vec::new();
    for process in 0..100_u64 {
        let limiter = limiter(&server.url(), mode, &account, two_buckets());
        let sent = Arc::clone(&sent);
        users.push(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(10));
            let mut number = process;
            loop {
                ticks.tick().await;
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (limiter, key) = (limiter.clone(), format!("k{}", (number >> 33) % 1_000));
                let sent = Arc::clone(&sent);
                tokio::spawn(async move {
                    drop(limiter.acquire(&key, &cost()).await.unwrap());
                    sent.fetch_add(1, Ordering::Relaxed);
                });
            }
        }));
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = sent.load(Ordering::Relaxed);
    print_load(redis, &format!("100 processes, 1,000 keys, {mode:?}")).await;
    let rate = (sent.load(Ordering::Relaxed) - before) as f64 / SECONDS as f64;
    println!("  {:<36}{rate:>8.0}/s", "its requests");
    users.into_iter().for_each(|user| user.abort());
}

/// Prints the load of the server during five seconds. Returns the time of scripts, in microseconds.
async fn print_load(redis: &mut MultiplexedConnection, name: &str) -> f64 {
    let _: () = cmd("CONFIG").arg("RESETSTAT").query_async(redis).await.unwrap();
    let before = ServerTime::read(redis).await;
    tokio::time::sleep(Duration::from_secs(SECONDS)).await;
    let after = ServerTime::read(redis).await;
    let (calls, seconds) = (after.calls as f64, SECONDS as f64);
    let per_call = after.script / calls.max(1.0);
    let core = (after.cpu - before.cpu) / seconds * 100.0;
    println!("  {name:<36}{:>8.0}/s{per_call:>8.1} us{core:>8.1} % of a core", calls / seconds);
    after.script
}

/// Makes decisions of several clients on one key.
async fn decide_concurrently(limiter: &Limiter, clients: u64, each: u64) -> u64 {
    let client = || tokio::spawn(decide_on_one_key(limiter.clone(), each));
    let clients: Vec<_> = (0..clients).map(|_| client()).collect();
    let mut sum = 0;
    for client in clients {
        sum += client.await.unwrap();
    }
    sum
}

/// Makes decisions on one key on two threads.
async fn decide_on_two_threads(limiter: &Limiter) -> u64 {
    let tasks = [limiter.clone(), limiter.clone()]
        .map(|limiter| tokio::spawn(decide_on_one_key(limiter, 250_000)));
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

/// Makes decisions of a local limiter.
async fn decide_locally(key: &str) -> u64 {
    let limiter = Limiter::builder().quota(key, quota()).margin(Margin::NONE).build().unwrap();
    decide_on_one_key(limiter, 500_000).await
}

/// Makes decisions in sequence on one key.
async fn decide_on_one_key(limiter: Limiter, decisions: u64) -> u64 {
    let cost = cost();
    for at in 0..decisions {
        drop(limiter.acquire("k", &cost).await.unwrap());
        if at % 1_024 == 0 {
            tokio::task::yield_now().await;
        }
    }
    decisions
}

/// Makes decisions on several keys concurrently, in sequence on each key.
async fn decide_on_keys(limiter: Limiter, keys: u64, each: u64) -> u64 {
    let task = |key: u64| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let (key, cost) = (format!("key-{key}"), cost());
            for _ in 0..each {
                drop(limiter.acquire(&key, &cost).await.unwrap());
            }
        })
    };
    let tasks: Vec<_> = (0..keys).map(task).collect();
    for task in tasks {
        task.await.unwrap();
    }
    keys * each
}

/// Prints the decisions per second of a run.
async fn print_rate<F: Future<Output = u64>>(name: &str, run: impl Fn() -> F, times: u32) {
    for _ in 0..times {
        let begin = Instant::now();
        let decisions = run().await;
        let seconds = begin.elapsed().as_secs_f64();
        println!("  {name:<32}{:>12.0}", decisions as f64 / seconds);
    }
}

fn limiter(url: &str, mode: SharingMode, account: &str, quota: Quota) -> Limiter {
    let shared = Shared::builder(url, account).mode(mode).on_failure(OnFailure::Closed);
    let shared = shared.timeout(Duration::from_millis(500)).connect().unwrap();
    let builder = Limiter::builder().quota("*", quota).margin(Margin::NONE);
    builder.backend(shared as Arc<_>).build().unwrap()
}

fn cost() -> Cost {
    Cost::new().tokens(100)
}

/// Returns a quota of RPM, TPM and RPD that a benchmark never exhausts.
fn quota() -> Quota {
    two_buckets().limit(bucket(Dimension::Requests, 80_000_000_000, Window::DAY))
}

fn two_buckets() -> Quota {
    Quota::new().limit(bucket(Dimension::Requests, 60_000_000, Window::MINUTE)).limit(bucket(
        Dimension::Tokens,
        6_000_000_000,
        Window::MINUTE,
    ))
}

fn bucket(dimension: Dimension, amount: u64, window: Window) -> Limit {
    Limit::new(dimension, amount, window).unwrap().with_algorithm(Algorithm::TokenBucket)
}

/// The time over which a load is measured.
const SECONDS: u64 = 5;

/// Milliseconds of a round trip, and the number of decisions in sequence at this distance.
const ROUND_TRIPS: [(u64, u64); 3] = [(0, 20_000), (1, 3_000), (5, 600)];

/// A script for one bucket with the generic cell rate algorithm.
const GCRA: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
if tat < now then tat = now end
local next = tat + interval
if next - burst > now then return {0, next - burst - now} end
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000) + 1)
return {1, 0}
";

/// Measures the script of one bucket.
async fn measure_gcra(
    redis: &mut MultiplexedConnection,
    other: &MultiplexedConnection,
    calls: u64,
) {
    let script = Script::new(GCRA);
    let mut other = other.clone();
    let mut invocation = script.key("gcra");
    invocation.arg(1).arg(1_000_000);
    let _: (u64, u64) = invocation.invoke_async(&mut other).await.unwrap();
    let run = || {
        let (invocation, mut redis) = (&invocation, other.clone());
        async move {
            let _: (u64, u64) = invocation.invoke_async(&mut redis).await.unwrap();
        }
    };
    print_server_time(redis, "GCRA, one bucket", calls, run).await;
}

/// Prints the CPU time of the server per call.
async fn print_server_time<F: Future<Output = ()>>(
    redis: &mut MultiplexedConnection,
    name: &str,
    decisions: u64,
    run: impl Fn() -> F,
) {
    let _: () = cmd("CONFIG").arg("RESETSTAT").query_async(redis).await.unwrap();
    let before = ServerTime::read(redis).await;
    for _ in 0..decisions {
        run().await;
    }
    let after = ServerTime::read(redis).await;
    let calls = after.calls as f64;
    let all = (after.cpu - before.cpu) * 1e6 / calls;
    println!("  {name:<32}{all:>8.1} us{:>8.1} us   {calls} scripts", after.script / calls);
}
