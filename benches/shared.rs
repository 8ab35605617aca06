//! A quota of three buckets shared over Redis, compared with a script of one bucket:
//! `cargo bench --bench shared --features redis`. Starts a separate `redis-server`.
//!
//! - Server time per call: total CPU time, and the part of the script (`INFO cpu`,
//!   `INFO commandstats`). The comparison is a GCRA script of one bucket (GET, SET with an expiry, the
//!   server's TIME), which doesn't settle and isn't idempotent.
//! - Decisions per second of one process: exact mode with one key and with 64, leases on one thread and
//!   on two, and a local limiter.

#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Script, cmd};
use tollgate::Limiter;
use tollgate::cluster::{OnFailure, Shared, SharingMode};
use tollgate::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Window};

#[tokio::main]
async fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let server = Server::start();
    let mut redis = server.connect().await;
    println!("server CPU time per call (total, script), {CALLS} calls in sequence");
    measure_gcra(&mut redis).await;
    let exact = limiter(&server, SharingMode::Exact, "exact");
    let settled = Cost::new().tokens(90);
    exact.acquire("warm", &cost()).await.unwrap().settle(&settled);
    print_server_time(&mut redis, "reserve three buckets, settle", || async {
        exact.acquire("k", &cost()).await.unwrap().settle(&settled);
    })
    .await;
    println!("decisions per second");
    print_rate("local limiter, one key", || decide_locally("k"), 1).await;
    print_rate("exact, one key", || async { decide_on_keys(exact.clone(), 1, 5_000).await }, 1)
        .await;
    print_rate("exact, 64 keys", || async { decide_on_keys(exact.clone(), 64, 400).await }, 1)
        .await;
    let leased = limiter(&server, SharingMode::Lease, "lease");
    decide_on_one_key(leased.clone(), 1_000).await;
    print_rate("leases, one key", || async { decide_on_one_key(leased.clone(), 500_000).await }, 1)
        .await;
    print_rate("leases, one key, two threads", || decide_on_two_threads(&leased), 1).await;
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

fn limiter(server: &Server, mode: SharingMode, account: &str) -> Limiter {
    let shared = Shared::builder(server.url(), account).mode(mode).on_failure(OnFailure::Closed);
    let shared = shared.timeout(Duration::from_millis(500)).connect().unwrap();
    let builder = Limiter::builder().quota("*", quota()).margin(Margin::NONE);
    builder.backend(shared as Arc<_>).build().unwrap()
}

fn cost() -> Cost {
    Cost::new().tokens(100)
}

/// Returns a quota of RPM, TPM and RPD that a benchmark never exhausts.
fn quota() -> Quota {
    let bucket = |dimension, amount: u64, window| {
        let limit = Limit::new(dimension, amount, window).unwrap();
        limit.with_algorithm(Algorithm::TokenBucket)
    };
    Quota::new()
        .limit(bucket(Dimension::Requests, 60_000_000, Window::MINUTE))
        .limit(bucket(Dimension::Tokens, 6_000_000_000, Window::MINUTE))
        .limit(bucket(Dimension::Requests, 80_000_000_000, Window::DAY))
}

const CALLS: u64 = 20_000;

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
async fn measure_gcra(redis: &mut MultiplexedConnection) {
    let script = Script::new(GCRA);
    let mut other = redis.clone();
    let mut invocation = script.key("gcra");
    invocation.arg(1).arg(1_000_000);
    let _: (u64, u64) = invocation.invoke_async(&mut other).await.unwrap();
    let run = || {
        let (invocation, mut redis) = (&invocation, other.clone());
        async move {
            let _: (u64, u64) = invocation.invoke_async(&mut redis).await.unwrap();
        }
    };
    print_server_time(redis, "GCRA, one bucket", run).await;
}

/// Prints the CPU time of the server per call.
async fn print_server_time<F: Future<Output = ()>>(
    redis: &mut MultiplexedConnection,
    name: &str,
    run: impl Fn() -> F,
) {
    let _: () = cmd("CONFIG").arg("RESETSTAT").query_async(redis).await.unwrap();
    let before = ServerTime::read(redis).await;
    for _ in 0..CALLS {
        run().await;
    }
    let after = ServerTime::read(redis).await;
    let calls = after.calls as f64;
    let all = (after.cpu - before.cpu) * 1e6 / calls;
    println!("  {name:<32}{all:>8.1} us{:>8.1} us   {calls} scripts", after.script / calls);
}

/// The CPU time of the server: seconds in total, microseconds in scripts, and the number of script calls.
struct ServerTime {
    cpu: f64,
    script: f64,
    calls: u64,
}

impl ServerTime {
    async fn read(redis: &mut MultiplexedConnection) -> Self {
        let read = |section: &str| cmd("INFO").arg(section).clone();
        let cpu: String = read("cpu").query_async(redis).await.unwrap();
        let commands: String = read("commandstats").query_async(redis).await.unwrap();
        let field = |text: &str, name: &str, end: &[char]| {
            let rest = text.split(name).nth(1)?;
            rest.split(end).next()?.trim().parse::<f64>().ok()
        };
        let of = |command: &str| {
            let line = commands.lines().find(|line| line.starts_with(command)).unwrap_or_default();
            let calls = field(line, "calls=", &[',']).unwrap_or(0.0);
            (calls, field(line, "usec=", &[',']).unwrap_or(0.0))
        };
        let (sha, text) = (of("cmdstat_evalsha:"), of("cmdstat_eval:"));
        let second = |name| field(&cpu, name, &['\r', '\n']).unwrap_or(0.0);
        Self {
            cpu: second("used_cpu_user:") + second("used_cpu_sys:"),
            script: sha.1 + text.1,
            calls: (sha.0 + text.0) as u64,
        }
    }
}

/// A Redis server process, killed on drop.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no"]).stdout(Stdio::null());
        let child = command.spawn().expect("redis-server is installed");
        Self { child, port }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    async fn connect(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.url()).unwrap();
        loop {
            if let Ok(connection) = client.get_multiplexed_async_connection().await {
                return connection;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
