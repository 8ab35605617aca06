//! A request for most of a limit, beside a stream of small ones of other processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};

use super::shared::{closed, limiter};
use paceline_testing::full::full_or;
use paceline_testing::process::{InteractiveProcess, print_message, test_command};
use paceline_testing::servers::Redis;
use paceline_testing::until;

/// The environment variable with the window in seconds and the server of a process.
const SMALL: &str = "PACELINE_TEST_SMALL_REQUESTS";

/// Ten requests per second.
fn quota(seconds: u64) -> Quota {
    let window = Window::new(Duration::from_secs(seconds)).unwrap();
    let limit = Limit::new(Dimension::Requests, 10 * seconds, window).unwrap();
    Quota::new().limit(limit.with_algorithm(Algorithm::TokenBucket))
}

/// The process that the other test starts; does nothing as a test. It prints each grant.
#[tokio::test]
async fn small_requests() {
    let Ok(arguments) = std::env::var(SMALL) else { return };
    let (seconds, url) = arguments.split_once(' ').unwrap();
    let shared = closed(url).connect().unwrap();
    let limiter = limiter(&shared, quota(seconds.parse().unwrap()));
    loop {
        limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
        print_message("granted");
    }
}

/// A process that sends small requests; its grants are recorded until it is dropped.
struct Stream {
    grants: Arc<Mutex<Vec<Instant>>>,
    is_stopped: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Stream {
    fn start(url: &str, seconds: u64) -> Self {
        let arguments = format!("{seconds} {url}");
        let mut command = test_command(module_path!(), "small_requests", SMALL, arguments);
        let mut process = InteractiveProcess::start(&mut command);
        let (grants, is_stopped) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let (recorded, stop) = (Arc::clone(&grants), Arc::clone(&is_stopped));
        let reader = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) && process.read_message().is_some() {
                recorded.lock().unwrap().push(Instant::now());
            }
        });
        Self { grants, is_stopped, reader: Some(reader) }
    }

    /// Returns the number of grants after a time.
    fn count(&self, since: Instant) -> usize {
        self.grants.lock().unwrap().iter().filter(|at| **at > since).count()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The next grant ends it.
        self.is_stopped.store(true, Ordering::Relaxed);
        self.reader.take().unwrap().join().unwrap();
    }
}

#[tokio::test]
async fn big_request_is_granted_beside_small_ones_of_other_processes() {
    let seconds: u64 = full_or(60, 6);
    let (limit, big) = (10 * seconds, 560 * seconds / 60);
    let redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, quota(seconds));
    let begin = Instant::now();
    let streams = [(); 2].map(|()| Stream::start(&redis.url(), seconds));
    until("the burst is used", || {
        streams.iter().all(|stream| stream.count(begin) > 1)
            && streams.iter().map(|stream| stream.count(begin)).sum::<usize>() as u64 > limit
    });
    let asked = Instant::now();
    let waiting = limiter.acquire("k", &Cost::new().requests(big));
    let permit = tokio::time::timeout(Duration::from_secs(3 * seconds), waiting).await;
    permit.expect("granted in the end").unwrap().settle(&Cost::new().requests(big));
    let granted = Instant::now();
    until("all others are served", || streams.iter().all(|stream| stream.count(granted) > 1));
    let end = Instant::now();
    let small: usize = streams.iter().map(|stream| stream.count(begin)).sum();
    println!("{big} of {limit} granted after {:?}, {small} small ones", granted - asked);
    // The burst, and what refilled since.
    let most = limit + 10 * ((end - begin).as_secs() + 1);
    assert!(small as u64 + big <= most, "{small} and {big} of {most}");
}
