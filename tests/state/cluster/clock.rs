//! A server whose clock is set while limits are used.

use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::Shared;
use paceline::limiter::Limiter;
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};

use super::failure::send_command;
use super::shared::{closed, limiter};
use paceline_testing::servers::Redis;
use paceline_testing::set_clock::SetClock;
use paceline_testing::until;

/// Two processes that share 40 requests per ten minutes, which refill by one in 15 seconds.
struct Pair {
    _redis: Redis,
    clock: SetClock,
    limiters: [Limiter; 2],
    quota: Quota,
    _shared: [Arc<Shared>; 2],
}

impl Pair {
    fn start(algorithm: Algorithm) -> Self {
        let (redis, clock) = Redis::with_clock();
        let shared = [(); 2].map(|()| closed(&redis.url()).connect().unwrap());
        let window = Window::new(Duration::from_secs(600)).unwrap();
        let limit = Limit::new(Dimension::Requests, 40, window).unwrap();
        let quota = Quota::new().limit(limit.with_algorithm(algorithm));
        let limiters = shared.each_ref().map(|shared| limiter(shared, quota.clone()));
        Self { _redis: redis, clock, limiters, quota, _shared: shared }
    }

    /// Returns limiters of new processes, which know nothing of the server.
    fn replace_processes(&mut self) -> [Limiter; 2] {
        self._shared = [(); 2].map(|()| closed(&self._redis.url()).connect().unwrap());
        self._shared.each_ref().map(|shared| limiter(shared, self.quota.clone()))
    }

    /// Returns the number of requests admitted until both processes are refused.
    fn take_all(&self) -> usize {
        let mut count = 0;
        while let Some(permit) =
            self.limiters.iter().find_map(|limiter| limiter.try_acquire("k", &Cost::new()).ok())
        {
            permit.settle(&Cost::new());
            count += 1;
        }
        count
    }
}

#[test]
fn clock_set_forward_refills_nothing() {
    for algorithm in ALGORITHMS {
        // Five minutes, and an hour, after which the hash has expired.
        for jump in [300, 3_600] {
            let pair = Pair::start(algorithm);
            assert_eq!(pair.take_all(), 40);
            pair.clock.set_offset(jump);
            assert!(pair.take_all() <= REFILLED, "{algorithm:?}, {jump} s");
        }
    }
}

#[test]
fn end_after_clock_set_forward_refills_nothing() {
    for algorithm in ALGORITHMS {
        let pair = Pair::start(algorithm);
        let permit = pair.limiters[0].try_acquire("k", &Cost::new()).unwrap();
        assert_eq!(pair.take_all(), 39);
        pair.clock.set_offset(300);
        // The first call after the change is not a decision.
        permit.settle(&Cost::new());
        until("the end is reported", || pair._shared[0].status().unacknowledged == 0);
        assert!(pair.take_all() <= REFILLED, "{algorithm:?}");
    }
}

#[test]
fn clock_set_back_and_slightly_forward_refills_nothing() {
    for algorithm in ALGORITHMS {
        let pair = Pair::start(algorithm);
        assert_eq!(pair.take_all(), 40);
        pair.clock.set_offset(-1_200);
        assert!(pair.take_all() <= REFILLED, "{algorithm:?}");
        // A tenth of the window, in which four requests refill.
        pair.clock.set_offset(-1_140);
        assert!(pair.take_all() <= REFILLED, "{algorithm:?}");
    }
}

#[test]
fn answers_count_after_clock_set_back() {
    let pair = Pair::start(Algorithm::SlidingWindow);
    let [first, second] = &pair.limiters;
    let take = |limiter: &Limiter| {
        limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
    };
    take(first);
    pair.clock.set_offset(-1_200);
    for _ in 0..20 {
        take(second);
    }
    take(first);
    assert_eq!(first.stats("k").limits[0].used, 22);
}

#[test]
fn process_started_after_jump_gets_at_most_what_it_skipped() {
    for algorithm in ALGORITHMS {
        let mut pair = Pair::start(algorithm);
        assert_eq!(pair.take_all(), 40);
        // All processes that know the earlier time end: nothing tells the jump from time that passed.
        pair.limiters = pair.replace_processes();
        pair.clock.set_offset(300);
        // Half of the window of a token bucket; a sliding window has nothing back before its end.
        let skipped = if algorithm == Algorithm::TokenBucket { 20 } else { 0 };
        let taken = pair.take_all();
        assert!(taken <= skipped + REFILLED, "{algorithm:?}: {taken}");
    }
}

#[test]
fn process_started_after_jump_is_told_of_it() {
    for algorithm in ALGORITHMS {
        let mut pair = Pair::start(algorithm);
        assert_eq!(pair.take_all(), 40);
        pair.clock.set_offset(300);
        // The processes that know the earlier time notice the change, and don't use the key again.
        let address = pair._redis.server().address;
        until("the change is noticed", || {
            send_command(address, "HSTRLEN paceline:{account}#reports jumps") != ":0\r\n"
        });
        let new = closed(&pair._redis.url()).connect().unwrap();
        until("the new process is connected", || new.status().connected);
        let new = limiter(&new, pair.quota.clone());
        let again = (0..40).filter(|_| new.try_acquire("k", &Cost::new()).is_ok()).count();
        assert!(again <= REFILLED, "{algorithm:?}: {again}");
    }
}

#[test]
fn repeated_small_jumps_refill_at_most_what_they_skip() {
    let pair = Pair::start(Algorithm::TokenBucket);
    assert_eq!(pair.take_all(), 40);
    // Each is like a late answer; all together are as long as four refills.
    let taken: usize = (1..=60)
        .map(|second| {
            pair.clock.set_offset(second);
            pair.take_all()
        })
        .sum();
    assert!(taken <= 4 + REFILLED, "{taken}");
}

const ALGORITHMS: [Algorithm; 2] = [Algorithm::TokenBucket, Algorithm::SlidingWindow];

/// The number of requests that may refill while a test runs.
const REFILLED: usize = 1;
