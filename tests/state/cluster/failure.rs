//! Decisions while the store is unavailable.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use paceline::cluster::{OnFailure, Shared, SharedStatus};
use paceline::limiter::Limiter;
use paceline::quota::{Cost, Quota};

use super::proxy::Proxy;
use super::shared::{admitted, closed, limiter};
use paceline_testing::full::full_or;
use paceline_testing::servers::Redis;
use paceline_testing::until;

/// Connects to shared limits with the default timeout.
pub(super) fn connect_with_default_timeout(url: &str, mode: OnFailure) -> Arc<Shared> {
    Shared::builder(url, "account").on_failure(mode).connect().unwrap()
}

/// Ten times the documented 50 ms and 10 ms, since the machine may be busy with other tests.
const MAX_DECISION_TIME: Duration = Duration::from_millis(600);

/// An action on a server.
type ServerAction = fn(&mut Redis);

/// The number of decisions, and the longest decision time.
#[derive(Debug, Default)]
struct DecisionTimer {
    admitted: usize,
    decisions: usize,
    longest: Duration,
}

impl DecisionTimer {
    fn try_acquire(&mut self, limiter: &Limiter) -> bool {
        let begin = Instant::now();
        let decision = limiter.try_acquire("k", &Cost::new());
        self.longest = self.longest.max(begin.elapsed());
        self.decisions += 1;
        self.admitted += usize::from(decision.is_ok());
        decision.is_ok()
    }
}

fn degraded(status: SharedStatus) -> u64 {
    status.degraded_closed + status.degraded_open + status.degraded_local
}

pub(super) fn wait_until_connected(shared: &Shared) {
    until("the store is back", || shared.status().connected);
}

/// Sends one inline command.
pub(super) fn send_command(address: SocketAddr, command: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    let mut answer = [0; 256];
    let read = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// Interrupts a server repeatedly in each mode, and asserts that every decision is in time and that the
/// number of admissions is within the bound of the mode.
fn interrupt_repeatedly(cut: ServerAction, restore: ServerAction, cause: &str) {
    std::thread::scope(|scope| {
        for mode in [OnFailure::Closed, OnFailure::LocalShare, OnFailure::Open] {
            scope.spawn(move || interrupt_in_mode(mode, cut, restore, cause));
        }
    });
}

fn interrupt_in_mode(mode: OnFailure, cut: ServerAction, restore: ServerAction, cause: &str) {
    let rounds = full_or(50, 10);
    let limit = 4 * rounds;
    let bound = match mode {
        // Exactly the limit, since reservations without a response are undone.
        OnFailure::Closed => limit..=limit,
        OnFailure::LocalShare => limit..=2 * limit,
        _ => limit..=usize::MAX,
    };
    let mut redis = Redis::start();
    let two = [
        connect_with_default_timeout(&redis.url(), mode),
        connect_with_default_timeout(&redis.url(), mode),
    ];
    let limiters = two.each_ref().map(|shared| limiter(shared, Quota::new().rpd(limit as u64)));
    until("both are counted", || two.iter().all(|shared| shared.status().members == 2));
    let (mut timer, mut longest_return) = (DecisionTimer::default(), Duration::ZERO);
    for round in 0..rounds {
        for turn in 0..6 {
            timer.try_acquire(&limiters[turn % 2]);
        }
        cut(&mut redis);
        for turn in 0..6 {
            let granted = timer.try_acquire(&limiters[turn % 2]);
            assert!(mode != OnFailure::Open || granted, "{cause}, round {round}");
        }
        restore(&mut redis);
        let begin = Instant::now();
        two.iter().for_each(|shared| wait_until_connected(shared));
        longest_return = longest_return.max(begin.elapsed());
    }
    let DecisionTimer { admitted, decisions, longest } = timer;
    eprintln!(
        "{cause}, {mode:?}: {admitted} of {decisions} admitted, longest decision {longest:?}, longest \
         return {longest_return:?}, {:?}",
        two[0].status()
    );
    assert!(longest < MAX_DECISION_TIME, "{cause}, {mode:?}: {longest:?}");
    assert!(bound.contains(&admitted), "{cause}, {mode:?}: {admitted}");
    assert!(degraded(two[0].status()) >= rounds as u64, "{cause}, {mode:?}");
    // Requests admitted during the outages were charged.
    assert!(limiters[0].try_acquire("k", &Cost::new()).is_err(), "{cause}, {mode:?}");
}

#[test]
fn server_killed_repeatedly_delays_no_decision() {
    interrupt_repeatedly(|redis| redis.server().kill(), Redis::restart, "killed");
}

#[test]
fn server_frozen_repeatedly_delays_no_decision() {
    interrupt_repeatedly(|redis| redis.server().freeze(), |redis| redis.server().thaw(), "frozen");
}

#[tokio::test]
async fn frozen_server_delays_no_async_task() {
    let mut redis = Redis::start();
    let shared = connect_with_default_timeout(&redis.url(), OnFailure::Open);
    let limiter = limiter(&shared, Quota::new().rpd(1_000));
    let mut longest = Duration::ZERO;
    for _ in 0..10 {
        drop(limiter.acquire("k", &Cost::new()).await.unwrap());
        redis.server().freeze();
        for _ in 0..3 {
            let begin = Instant::now();
            drop(limiter.acquire("k", &Cost::new()).await.unwrap());
            longest = longest.max(begin.elapsed());
        }
        redis.server().thaw();
        wait_until_connected(&shared);
    }
    eprintln!("longest decision {longest:?}, {:?}", shared.status());
    assert!(longest < MAX_DECISION_TIME, "{longest:?}");
}

#[test]
fn answer_lost_after_execution_charges_once() {
    let mut redis = Redis::start();
    let proxy = Proxy::start(redis.server().address, 3);
    let shared = closed(&format!("redis://{}", proxy.address)).connect().unwrap();
    let (limit, retries) = (1_000_000, full_or(10_000, 1_000));
    let limiter = limiter(&shared, Quota::new().rpd(limit).concurrency(1_000));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while shared.status().retries < retries && shared.status().outages == 0 {
                    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
                }
            });
        }
    });
    until("all ends are acknowledged", || shared.status().unacknowledged == 0);
    let status = shared.status();
    eprintln!("{} answers lost: {status:?}", proxy.dropped());
    assert_eq!(degraded(status), 0);
    let direct = closed(&redis.url()).connect().unwrap();
    let direct = super::shared::limiter(&direct, Quota::new().rpd(limit).concurrency(1_000));
    drop(direct.try_acquire("k", &Cost::new()).unwrap());
    let stats = direct.stats("k");
    let used: Vec<_> = stats.limits.iter().map(|limit| limit.used).collect();
    assert_eq!(used[0], status.decided + 1, "{stats:?}");
}

#[tokio::test]
async fn acquire_dropped_at_any_moment_leaves_zero_held() {
    let redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().concurrency(4));
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..full_or(4_000, 400) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut acquiring = Box::pin(limiter.acquire("k", &Cost::new()));
        for _ in 0..random % 400 {
            let polled = acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if polled.is_ready() {
                break;
            }
            // Without yielding, most drops would happen before the response.
            if round % 2 == 0 {
                std::thread::yield_now();
            }
        }
    }
    until("all reservations are undone", || {
        let status = shared.status();
        status.unacknowledged == 0 && status.opened == 0
    });
    assert_eq!(admitted(&limiter, 9).len(), 4);
    eprintln!("{:?}", shared.status());
}

#[test]
fn server_refusing_writes_is_unavailable_until_writable() {
    let mut redis = Redis::start();
    let address = redis.server().address;
    let shared = connect_with_default_timeout(&redis.url(), OnFailure::Closed);
    let limiter = limiter(&shared, Quota::new().rpd(1_000));
    for (refuse, accept) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
        ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
    ] {
        wait_until_connected(&shared);
        assert!(limiter.try_acquire("k", &Cost::new()).is_ok(), "before {refuse}");
        assert!(send_command(address, refuse).starts_with("+OK"));
        let mut timer = DecisionTimer::default();
        for _ in 0..50 {
            assert!(!timer.try_acquire(&limiter), "{refuse}");
        }
        assert!(timer.longest < MAX_DECISION_TIME, "{refuse}: {:?}", timer.longest);
        assert!(!shared.status().connected, "{refuse}");
        assert!(send_command(address, accept).starts_with("+OK"));
        let begin = Instant::now();
        wait_until_connected(&shared);
        eprintln!("{refuse}: {:?}, back after {:?}", timer.longest, begin.elapsed());
    }
}

#[test]
fn script_flushed_by_server_is_sent_again() {
    let mut redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(100));
    for _ in 0..5 {
        assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
        assert!(send_command(redis.server().address, "SCRIPT FLUSH").starts_with("+OK"));
    }
    assert_eq!(degraded(shared.status()), 0);
}

#[test]
fn cluster_node_without_slots_is_unavailable() {
    let redis = Redis::with(&["--cluster-enabled", "yes"]);
    let shared = connect_with_default_timeout(&redis.url(), OnFailure::Open);
    let limiter = limiter(&shared, Quota::new().rpd(1));
    let mut timer = DecisionTimer::default();
    for _ in 0..50 {
        assert!(timer.try_acquire(&limiter));
    }
    assert!(timer.longest < MAX_DECISION_TIME, "{:?}", timer.longest);
    assert!(!shared.status().connected);
}

#[test]
fn undecidable_key_alone_is_degraded_to_local_share() {
    let mut redis = Redis::start();
    let address = redis.server().address;
    // A late answer is an outage, after which the share is admitted again: no answer is late here.
    let shared = Shared::builder(redis.url(), "account").timeout(Duration::from_secs(10));
    let shared = shared.on_failure(OnFailure::LocalShare).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(10));
    wait_until_connected(&shared);
    assert!(send_command(address, "SET paceline:{account}:k 1").starts_with("+OK"));
    let (mut timer, begin) = (DecisionTimer::default(), Instant::now());
    // Longer than several heartbeats, each of which tries to charge the key.
    while begin.elapsed() < Duration::from_secs(3) {
        timer.try_acquire(&limiter);
        std::thread::park_timeout(Duration::from_millis(1));
    }
    assert_eq!(timer.admitted, 10);
    let decided = shared.status().decided;
    assert!(limiter.try_acquire("another", &Cost::new()).is_ok());
    assert_eq!(shared.status().decided, decided + 1, "{:?}", shared.status());
    assert_eq!(shared.status().outages, 0);
    assert!(send_command(address, "DEL paceline:{account}:k").starts_with(":1"));
    until("admitted requests are charged", || shared.status().unacknowledged == 0);
    assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    assert_eq!(shared.status().decided, decided + 2, "{:?}", shared.status());
}
