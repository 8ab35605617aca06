//! Many processes that share one quota: sixteen at once, and lease holders that are killed.

use paceline::Timestamp;
use std::collections::VecDeque;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use paceline::Limiter;
use paceline::cluster::{OnFailure, Shared, SharingMode};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};

use paceline_testing::full::full_or;
use paceline_testing::process::{InteractiveProcess, print_message, test_command};
use paceline_testing::servers::Redis;

/// The environment variable with server, mode and duration (milliseconds) for a worker of a fleet.
const FLEET: &str = "PACELINE_TEST_FLEET";

/// The worker process that other tests start; does nothing as a test.
#[test]
fn fleet_worker() {
    let Ok(arguments) = std::env::var(FLEET) else { return };
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mode = if arguments[1] == "lease" { SharingMode::Lease } else { SharingMode::Exact };
    // A server on a machine busy with other tests is slow, but available.
    let failure = if arguments[1] == "share" { OnFailure::LocalShare } else { OnFailure::Closed };
    let shared = Shared::builder(arguments[0], "team").mode(mode).lease(LEASE).on_failure(failure);
    let shared = shared.timeout(Duration::from_millis(250));
    let limiter = limiter(&shared.connect().unwrap());
    let until = limiter.now() + Duration::from_millis(arguments[2].parse().unwrap());
    block_on(async {
        let tasks: Vec<_> = (0..4).map(|n| tokio::spawn(send(limiter.clone(), n, until))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        limiter.close().await;
    });
}

/// Sends requests one after another and prints time and tokens of each.
async fn send(limiter: Limiter, task: u64, until: Timestamp) {
    let mut number = task;
    loop {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let tokens = 10 + (number >> 33) % 61;
        let Ok(permit) = limiter.acquire("k", &Cost::new().tokens(tokens)).deadline(until).await
        else {
            return;
        };
        print_message(&format!("{} {tokens}", limiter.now().as_nanos()));
        permit.settle(&Cost::new().tokens(tokens));
    }
}

/// Three limits: requests per minute are exhausted, tokens per window nearly, requests per day are
/// not.
pub(super) fn quota() -> Quota {
    let limit = |dimension, amount, window| Limit::new(dimension, amount, window).unwrap();
    let ten_seconds = Window::new(Duration::from_secs(10)).unwrap();
    Quota::new()
        .limit(limit(Dimension::Requests, RPM, Window::MINUTE).with_burst(BURST))
        .limit(
            limit(Dimension::Tokens, TOKENS, ten_seconds).with_algorithm(Algorithm::SlidingWindow),
        )
        .limit(limit(Dimension::Requests, RPD, Window::DAY).with_burst(RPD))
}

fn limiter(shared: &Arc<Shared>) -> Limiter {
    Limiter::builder().quota("k", quota()).backend(Arc::clone(shared) as _).build().unwrap()
}

pub(super) const RPM: u64 = 6_000;
pub(super) const BURST: u64 = 200;
const TOKENS: u64 = 60_000;
const RPD: u64 = 1_000_000;
const LEASE: Duration = Duration::from_secs(1);

/// One process of a fleet.
pub(super) struct Worker {
    process: InteractiveProcess,
    sent: Vec<Sent>,
}

/// The time of a request in nanoseconds since the epoch, and its tokens.
pub(super) type Sent = (Timestamp, u64);

impl Worker {
    /// Returns the command of a worker for this server, mode and duration.
    pub(super) fn command(url: &str, mode: &str, millis: u64) -> Command {
        test_command(module_path!(), "fleet_worker", FLEET, format!("{url} {mode} {millis}"))
    }

    pub(super) fn start(command: &mut Command) -> Self {
        Self { process: InteractiveProcess::start(command), sent: Vec::new() }
    }

    /// Reads until the worker has sent a request at `time` or later, and returns its time.
    pub(super) fn wait_until_sent(&mut self, time: Timestamp) -> Timestamp {
        loop {
            let sent = self.receive().expect("the worker ended before");
            if sent.0 >= time {
                return sent.0;
            }
        }
    }

    /// Returns all requests sent until the worker ended.
    pub(super) fn read_rest(mut self) -> Vec<Sent> {
        while self.receive().is_some() {}
        self.process.output();
        self.sent
    }

    /// Kills the worker and returns the requests sent before.
    fn kill(mut self) -> Vec<Sent> {
        self.process.kill();
        self.read_rest()
    }

    fn receive(&mut self) -> Option<Sent> {
        let line = self.process.read_message()?;
        let (at, tokens) = line.split_once(' ').expect("two numbers");
        let at = Timestamp::from_nanos(at.parse().expect("a time"));
        let sent = (at, tokens.parse().expect("tokens"));
        self.sent.push(sent);
        Some(sent)
    }
}

/// Returns the requests or tokens by which a provider's quota would have been exceeded.
pub(super) fn excess(sent: &[Sent]) -> u64 {
    let requests = bucket_excess(sent, RPM, 60_000_000_000, BURST);
    let day = bucket_excess(sent, RPD, 86_400_000_000_000, RPD);
    requests.max(day).max(window_excess(sent))
}

/// Returns the largest deficit of a bucket with the full burst and an exact refill of `amount` per `window`
/// nanoseconds.
fn bucket_excess(sent: &[Sent], amount: u64, window: u64, burst: u64) -> u64 {
    let (full, token) = (i128::from(burst) * i128::from(window), i128::from(window));
    let (mut level, mut last, mut worst) = (full, Timestamp::UNIX_EPOCH, 0);
    for &(at, _) in sent {
        let passed = i128::try_from((at - last).as_nanos()).unwrap();
        level = (level + passed * i128::from(amount)).min(full) - token;
        last = at;
        worst = worst.min(level);
    }
    u64::try_from((-worst).div_euclid(token) + i128::from((-worst).rem_euclid(token) > 0)).unwrap()
}

/// Returns the largest excess of tokens in any window.
fn window_excess(sent: &[Sent]) -> u64 {
    let (mut first, mut within, mut worst) = (0, 0, 0);
    for &(at, tokens) in sent {
        within += tokens;
        while sent[first].0 + Duration::from_secs(10) <= at {
            within -= sent[first].1;
            first += 1;
        }
        worst = worst.max(within.saturating_sub(TOKENS));
    }
    worst
}

#[test]
fn fleet_checker_detects_excess() {
    let at = Timestamp::from_nanos;
    let burst: Vec<_> = (0..BURST).map(|_| (at(1_000_000_000), 10)).collect();
    assert_eq!(excess(&burst), 0);
    let more: Vec<_> = burst.iter().copied().chain([(at(1_009_999_999), 10)]).collect();
    assert_eq!(excess(&more), 1);
    let later: Vec<_> = burst.iter().copied().chain([(at(1_010_000_000), 10)]).collect();
    assert_eq!(excess(&later), 0);
    assert_eq!(excess(&[(at(1), TOKENS), (at(10_000_000_000), 7)]), 7);
    assert_eq!(excess(&[(at(1), TOKENS), (at(10_000_000_001), 7)]), 0);
}

fn assert_sixteen_processes_use_quota(mode: &str) {
    let redis = Redis::start();
    let millis = full_or(60_000, 6_000);
    let start = |_| Worker::start(&mut Worker::command(&redis.url(), mode, millis));
    let workers: Vec<_> = (0..16).map(start).collect();
    // Each pipe holds more than the output of a worker in a minute.
    let sent: Vec<_> = workers.into_iter().map(Worker::read_rest).collect();
    let each: Vec<_> = sent.iter().map(Vec::len).collect();
    let mut all: Vec<_> = sent.into_iter().flatten().collect();
    all.sort_unstable();
    let seconds = (all[all.len() - 1].0 - all[0].0).as_secs_f64();
    // The margin of 500 ms is taken from the burst.
    let most = (BURST - RPM / 120) as f64 + RPM as f64 / 60.0 * seconds;
    let used = all.len() as f64 / most;
    let (least, greatest) = (each.iter().min().unwrap(), each.iter().max().unwrap());
    println!(
        "{mode}: {} requests in {seconds:.1} s, {:.1} % of the quota; {least} to {greatest} a process",
        all.len(),
        used * 100.0
    );
    assert_eq!(excess(&all), 0, "the provider's quota is exceeded");
    assert!(used >= 0.9, "only {:.1} % of the quota was used", used * 100.0);
    // No process starves.
    assert!(*least * 4 >= all.len() / 16, "one process sent {least} of {}", all.len());
}

#[test]
fn sixteen_processes_use_whole_quota_in_exact_mode() {
    assert_sixteen_processes_use_quota("exact");
}

#[test]
fn sixteen_processes_use_whole_quota_in_lease_mode() {
    assert_sixteen_processes_use_quota("lease");
}

#[test]
fn killed_lease_holders_exceed_no_limit_and_leases_expire() {
    let redis = Redis::start();
    let start = || Worker::start(&mut Worker::command(&redis.url(), "lease", 600_000));
    let mut workers: VecDeque<_> = (0..4).map(|_| start()).collect();
    let (mut all, kills) = (Vec::new(), full_or(200, 20));
    for _ in 0..kills {
        let mut oldest = workers.pop_front().unwrap();
        workers.push_back(start());
        // The worker holds a lease after its first request.
        oldest.wait_until_sent(Timestamp::UNIX_EPOCH);
        all.extend(oldest.kill());
    }
    all.extend(workers.into_iter().flat_map(Worker::kill));
    all.sort_unstable();
    println!("{} requests of {} processes", all.len(), kills + 4);
    assert_eq!(excess(&all), 0);
    let shared = Shared::builder(redis.url(), "team").connect().unwrap();
    let limiter = limiter(&shared);
    // Leases of killed workers count as used when they expire. The whole burst is available again
    // after the time in which a bucket refills.
    let again = LEASE + Duration::from_secs(BURST * 60 / RPM + 10);
    let permits: Vec<_> = block_on(async {
        let cost = Cost::new().requests(BURST * 9 / 10);
        let all = limiter.acquire("k", &cost).max_wait(again).await;
        all.into_iter().collect()
    });
    assert_eq!(permits.len(), 1, "a lease was not returned: {:?}", limiter.stats("k"));
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
