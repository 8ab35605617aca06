//! The limit is never exceeded by concurrent callers.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::time::Duration;

use paceline::limiter::Limiter;
use paceline::quota::{Algorithm, Cost, Quota};
use proptest::prelude::*;

use super::rig::{S, manual, paused, tokens, used};

const CALLERS: usize = 50;

/// Starts fifty threads at the same moment, with this many attempts each. Returns the number of granted
/// attempts.
fn acquire_from_all(limiter: &Limiter, cost: &Cost, tries: usize) -> usize {
    let start = Barrier::new(CALLERS);
    let caller = || {
        start.wait();
        super::rig::admitted(limiter, "k", cost, tries)
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    })
}

#[test]
fn f08_fifty_concurrent_callers_are_granted_the_limit() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        for limit in [1, 49, 50, 51, 777] {
            let (limiter, _) = manual(Quota::new().rpm(limit).with_algorithm(algorithm));
            assert_eq!(
                acquire_from_all(&limiter, &Cost::new(), 20),
                limit as usize,
                "{algorithm:?}"
            );
            assert_eq!(used(&limiter, "k"), [limit]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Threads acquire concurrently at random times: no minute exceeds the limit, and no capacity is
    /// left unused.
    #[test]
    fn f08_each_minute_grants_exactly_the_available_capacity(
        limit in 1_u64..300,
        cost in 1_u64..9,
        rounds in prop::collection::vec((0_u64..45, 1_usize..8), 1..5),
    ) {
        let (limiter, clock) = manual(Quota::new().tpm(limit).rpm(10_000));
        let mut sent = VecDeque::new();
        for (pause, tries) in rounds {
            clock.advance(Duration::from_secs(pause));
            let now = limiter.now();
            sent.retain(|&(at, _)| at + 60 * S > now);
            let in_window: u64 = sent.iter().map(|&(_, amount)| amount).sum();
            let available = (limit - in_window) / cost;
            let granted = acquire_from_all(&limiter, &tokens(cost), tries) as u64;
            prop_assert_eq!(granted, available.min((CALLERS * tries) as u64));
            sent.push_back((now, granted * cost));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f08_fifty_waiting_callers_pass_at_rate_of_limit() {
    let limiter = paused(Quota::new().rpm(5));
    let begin = limiter.now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let limiter = limiter.clone();
        callers.spawn(async move {
            let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
            permit.granted_at() - begin
        });
    }
    let mut granted = callers.join_all().await;
    granted.sort_unstable();
    let minutes: Vec<_> = granted.iter().map(|at| at.as_secs() / 60).collect();
    let expected: Vec<_> = (0..10).flat_map(|minute| [minute; 5]).collect();
    assert_eq!(minutes, expected);
    assert!(granted.windows(6).all(|six| six[5] - six[0] >= 60 * S));
}
