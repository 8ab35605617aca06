//! What becomes of decisions while their store is away.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tollgate::cluster::{OnFailure, Shared, SharedStatus};
use tollgate::limiter::Limiter;
use tollgate::quota::{Cost, Quota};

use super::proxy::Proxy;
use super::shared::{admitted, closed, limiter, until};
use tollgate_testing::full::full_or;
use tollgate_testing::servers::Redis;

/// With the time that is promised.
pub(super) fn prompt(url: &str, mode: OnFailure) -> Arc<Shared> {
    Shared::builder(url, "account").on_failure(mode).connect().unwrap()
}

/// Ten times what is promised (50 ms and 10 ms), as the machine may be busy with other tests.
const IN_TIME: Duration = Duration::from_millis(600);

/// What is done to a server.
type Deed = fn(&mut Redis);

/// Decisions, and the longest of them.
#[derive(Debug, Default)]
struct Watch {
    admitted: usize,
    asked: usize,
    longest: Duration,
}

impl Watch {
    fn ask(&mut self, limiter: &Limiter) -> bool {
        let begin = Instant::now();
        let answer = limiter.try_acquire("k", &Cost::new());
        self.longest = self.longest.max(begin.elapsed());
        self.asked += 1;
        self.admitted += usize::from(answer.is_ok());
        answer.is_ok()
    }
}

fn degraded(status: SharedStatus) -> u64 {
    status.degraded_closed + status.degraded_open + status.degraded_local
}

pub(super) fn connected(shared: &Shared) {
    until("the store is back", || shared.status().connected);
}

/// One command, as a person would type it.
fn tell(address: SocketAddr, command: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    let mut answer = [0; 256];
    let read = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// A server that goes away and comes back, fifty times, in each mode: every decision in time, and the
/// bound of the mode kept.
fn again_and_again(cut: Deed, mend: Deed, what: &str) {
    std::thread::scope(|scope| {
        for mode in [OnFailure::Closed, OnFailure::LocalShare, OnFailure::Open] {
            scope.spawn(move || cut_and_mend(mode, (cut, mend), what));
        }
    });
}

fn cut_and_mend(mode: OnFailure, (cut, mend): (Deed, Deed), what: &str) {
    let rounds = full_or(50, 10);
    let limit = 4 * rounds;
    let bound = match mode {
        // All of the limit, too: what was asked in vain has been undone.
        OnFailure::Closed => limit..=limit,
        OnFailure::LocalShare => limit..=2 * limit,
        _ => limit..=usize::MAX,
    };
    let mut redis = Redis::start();
    let two = [prompt(&redis.url(), mode), prompt(&redis.url(), mode)];
    let limiters = two.each_ref().map(|shared| limiter(shared, Quota::new().rpd(limit as u64)));
    until("both are counted", || two.iter().all(|shared| shared.status().members == 2));
    let (mut watch, mut longest_return) = (Watch::default(), Duration::ZERO);
    for round in 0..rounds {
        for turn in 0..6 {
            watch.ask(&limiters[turn % 2]);
        }
        cut(&mut redis);
        for turn in 0..6 {
            let let_in = watch.ask(&limiters[turn % 2]);
            assert!(mode != OnFailure::Open || let_in, "{what}, round {round}");
        }
        mend(&mut redis);
        let begin = Instant::now();
        two.iter().for_each(|shared| connected(shared));
        longest_return = longest_return.max(begin.elapsed());
    }
    let Watch { admitted, asked, longest } = watch;
    eprintln!(
        "{what}, {mode:?}: {admitted} of {asked} let in, longest decision {longest:?}, longest \
         return {longest_return:?}, {:?}",
        two[0].status()
    );
    assert!(longest < IN_TIME, "{what}, {mode:?}: {longest:?}");
    assert!(bound.contains(&admitted), "{what}, {mode:?}: {admitted}");
    assert!(degraded(two[0].status()) >= rounds as u64, "{what}, {mode:?}");
    // What was let in without it was charged.
    assert!(limiters[0].try_acquire("k", &Cost::new()).is_err(), "{what}, {mode:?}");
}

#[test]
fn a_server_that_is_killed_again_and_again_delays_nobody_and_gives_nothing_away() {
    again_and_again(|redis| redis.server().kill(), Redis::restart, "killed");
}

#[test]
fn a_server_that_stands_still_again_and_again_delays_nobody_and_gives_nothing_away() {
    again_and_again(|redis| redis.server().freeze(), |redis| redis.server().thaw(), "frozen");
}

#[tokio::test]
async fn a_server_that_stands_still_delays_no_task() {
    let mut redis = Redis::start();
    let shared = prompt(&redis.url(), OnFailure::Open);
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
        connected(&shared);
    }
    eprintln!("longest decision {longest:?}, {:?}", shared.status());
    assert!(longest < IN_TIME, "{longest:?}");
}

#[test]
fn an_answer_that_is_lost_after_execution_charges_once() {
    let mut redis = Redis::start();
    let proxy = Proxy::to(redis.server().address, 3);
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
    until("all ends are told", || shared.status().unacknowledged == 0);
    let status = shared.status();
    eprintln!("{} answers lost: {status:?}", proxy.cut());
    assert_eq!(degraded(status), 0);
    let direct = closed(&redis.url()).connect().unwrap();
    let direct = super::shared::limiter(&direct, Quota::new().rpd(limit).concurrency(1_000));
    drop(direct.try_acquire("k", &Cost::new()).unwrap());
    let stats = direct.stats("k");
    let used: Vec<_> = stats.limits.iter().map(|limit| limit.used).collect();
    assert_eq!(used[0], status.decided + 1, "{stats:?}");
}

#[tokio::test]
async fn whoever_gives_up_at_any_moment_leaves_nothing_held() {
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
            // Else it would hardly ever be given up before its answer comes.
            if round % 2 == 0 {
                std::thread::yield_now();
            }
        }
    }
    until("all is undone", || {
        let status = shared.status();
        status.unacknowledged == 0 && status.opened == 0
    });
    assert_eq!(admitted(&limiter, 9).len(), 4);
    eprintln!("{:?}", shared.status());
}

#[test]
fn a_server_that_refuses_to_write_is_away_until_it_does() {
    let mut redis = Redis::start();
    let address = redis.server().address;
    let shared = prompt(&redis.url(), OnFailure::Closed);
    let limiter = limiter(&shared, Quota::new().rpd(1_000));
    for (refuse, accept) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
        ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
    ] {
        connected(&shared);
        assert!(limiter.try_acquire("k", &Cost::new()).is_ok(), "before {refuse}");
        assert!(tell(address, refuse).starts_with("+OK"));
        let mut watch = Watch::default();
        for _ in 0..50 {
            assert!(!watch.ask(&limiter), "{refuse}");
        }
        assert!(watch.longest < IN_TIME, "{refuse}: {:?}", watch.longest);
        assert!(!shared.status().connected, "{refuse}");
        assert!(tell(address, accept).starts_with("+OK"));
        let begin = Instant::now();
        connected(&shared);
        eprintln!("{refuse}: {:?}, back after {:?}", watch.longest, begin.elapsed());
    }
}

#[test]
fn a_script_that_the_server_has_forgotten_is_sent_again() {
    let mut redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(100));
    for _ in 0..5 {
        assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
        assert!(tell(redis.server().address, "SCRIPT FLUSH").starts_with("+OK"));
    }
    assert_eq!(degraded(shared.status()), 0);
}

#[test]
fn a_node_of_a_cluster_that_has_no_slots_is_away() {
    let redis = Redis::with(&["--cluster-enabled", "yes"]);
    let shared = prompt(&redis.url(), OnFailure::Open);
    let limiter = limiter(&shared, Quota::new().rpd(1));
    let mut watch = Watch::default();
    for _ in 0..50 {
        assert!(watch.ask(&limiter));
    }
    assert!(watch.longest < IN_TIME, "{:?}", watch.longest);
    assert!(!shared.status().connected);
}

#[test]
fn a_key_that_the_store_can_not_decide_is_alone_in_that_and_keeps_to_its_share() {
    let mut redis = Redis::start();
    let address = redis.server().address;
    let shared = prompt(&redis.url(), OnFailure::LocalShare);
    let limiter = limiter(&shared, Quota::new().rpd(10));
    connected(&shared);
    assert!(tell(address, "SET tollgate:{account}:k 1").starts_with("+OK"));
    let (mut watch, begin) = (Watch::default(), Instant::now());
    // Over several beats, each of which tries to charge it.
    while begin.elapsed() < Duration::from_secs(3) {
        watch.ask(&limiter);
        std::thread::park_timeout(Duration::from_millis(1));
    }
    assert_eq!(watch.admitted, 10);
    let decided = shared.status().decided;
    assert!(limiter.try_acquire("another", &Cost::new()).is_ok());
    assert_eq!(shared.status().decided, decided + 1, "{:?}", shared.status());
    assert_eq!(shared.status().outages, 0);
    assert!(tell(address, "DEL tollgate:{account}:k").starts_with(":1"));
    until("what was let in is charged", || shared.status().unacknowledged == 0);
    assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    assert_eq!(shared.status().decided, decided + 2, "{:?}", shared.status());
}
