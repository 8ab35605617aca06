//! Processes that end, or stop, while one of their requests waits.

use std::time::Duration;

use paceline::quota::{Cost, Quota};

use super::failure::send_command;
use super::shared::{closed, limiter};
use paceline_testing::process::{InteractiveProcess, print_message, test_command};
use paceline_testing::servers::Redis;
use paceline_testing::until;

/// The environment variable with the server for a waiting process.
const WAITER: &str = "PACELINE_TEST_WAITER";

/// The process that other tests start; does nothing as a test. It waits for 80 requests until it
/// reads a line, and then closes its limiter.
#[tokio::test]
async fn waiter() {
    let Ok(url) = std::env::var(WAITER) else { return };
    let shared = closed(&url).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(100));
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire("k", &Cost::new().requests(80)).await.is_ok() }
    });
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
    line.await.unwrap();
    limiter.close().await;
    assert!(!waiting.await.unwrap());
    print_message("closed");
}

/// Returns whether a request waits in the server's queue of key `k`.
fn has_tickets(redis: &mut Redis) -> bool {
    // The expiry of a ticket is in a field of its own.
    send_command(redis.server().address, "HKEYS paceline:{account}:k").contains("$17\r\nt")
}

/// Starts a process that waits for more than is available, ends it in this way, and asserts that
/// another process gets the 40 free requests.
async fn assert_others_are_served(end: impl Fn(&mut InteractiveProcess)) {
    let mut redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(100));
    let _used = limiter.try_acquire("k", &Cost::new().requests(60)).unwrap();
    let mut command = test_command(module_path!(), "waiter", WAITER, redis.url());
    let mut process = InteractiveProcess::start(&mut command);
    while !has_tickets(&mut redis) {
        std::thread::park_timeout(Duration::from_millis(1));
    }
    assert!(limiter.try_acquire("k", &Cost::new().requests(40)).is_err(), "the waiter is first");
    end(&mut process);
    // A ticket lasted 30 s before.
    let served = limiter.acquire("k", &Cost::new().requests(40)).max_wait(SOON).await;
    process.kill();
    assert!(served.is_ok(), "{:?}", limiter.stats("k"));
}

/// Much longer than a ticket lasts, since the machine may be busy with other tests.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn killed_waiter_stalls_no_other_process() {
    assert_others_are_served(InteractiveProcess::kill).await;
}

#[tokio::test]
async fn terminated_waiter_stalls_no_other_process() {
    assert_others_are_served(|process| process.guard().signal("-TERM")).await;
}

#[tokio::test]
async fn stopped_waiter_stalls_no_other_process() {
    assert_others_are_served(|process| process.guard().signal("-STOP")).await;
}

#[tokio::test]
async fn closed_limiter_leaves_no_ticket() {
    let mut redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(100));
    let _used = limiter.try_acquire("k", &Cost::new().requests(60)).unwrap();
    for _ in 0..7 {
        let mut command = test_command(module_path!(), "waiter", WAITER, redis.url());
        let mut process = InteractiveProcess::start(&mut command);
        while !has_tickets(&mut redis) {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        process.write_line("");
        assert_eq!(process.read_message().unwrap(), "closed");
        assert!(!has_tickets(&mut redis));
    }
}

#[tokio::test]
async fn living_waiter_keeps_its_place_while_it_waits() {
    let mut redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(100));
    let used = limiter.try_acquire("k", &Cost::new().requests(60)).unwrap();
    let cost = Cost::new().requests(80);
    let mut waiting = Box::pin(limiter.acquire("k", &cost));
    // Several times as long as a ticket lasts without renewal.
    let elapsed = tokio::time::timeout(Duration::from_secs(3), waiting.as_mut()).await;
    assert!(elapsed.is_err());
    assert!(has_tickets(&mut redis));
    let other = closed(&redis.url()).connect().unwrap();
    let other = super::shared::limiter(&other, Quota::new().rpd(100));
    assert!(other.try_acquire("k", &Cost::new().requests(40)).is_err());
    used.release();
    drop(waiting);
    until("the ticket is returned", || other.try_acquire("k", &Cost::new().requests(40)).is_ok());
}
