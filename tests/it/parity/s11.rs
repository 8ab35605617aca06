//! Each failure has a typed error.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{Agent, LocalBus, NoAgentId};
use paceline::engine::Wait;
use paceline::limiter::{AcquireError, BuildError, Code, Refused, UnknownKey};
use paceline::quota::{Cost, Dimension, InvalidWindow, Limit, Margin, Quota, Window};

use super::rig::{builder, paused, seconds, settle_down, tokens, waiter};

#[tokio::test(start_paused = true)]
async fn s11_unknown_exhausted_and_oversized_have_typed_errors() {
    let refused = |result: Result<_, Refused>| result.map(drop).unwrap_err();
    let limiter = paused(Quota::new().tpm(100));
    drop(limiter.acquire("k", &tokens(100)).await.unwrap());
    let exhausted = refused(limiter.try_acquire("k", &tokens(1)));
    assert_eq!(exhausted.code, Code::TpmExceeded);
    assert_eq!(exhausted.retry_after(), Some(Duration::from_secs(60)));
    let above = refused(limiter.try_acquire("k", &tokens(101)));
    assert_eq!((above.code, above.wait), (Code::ExceedsCapacity, Wait::Never));
    let unknown = builder().unknown_key(UnknownKey::Refuse).build().unwrap();
    let unknown = refused(unknown.try_acquire("k", &tokens(1)));
    assert_eq!((unknown.code, unknown.wait), (Code::UnknownModel, Wait::Never));
}

#[tokio::test(start_paused = true)]
async fn s11_closed_limiter_has_a_typed_error() {
    let limiter = paused(Quota::new().rpm(9));
    limiter.close().await;
    assert_eq!(limiter.acquire("k", &Cost::new()).await.unwrap_err(), AcquireError::Closed);
    assert_eq!(limiter.try_acquire("k", &Cost::new()).unwrap_err().code, Code::Closed);
}

#[tokio::test(start_paused = true)]
async fn s11_deadline_and_cancellation_have_typed_outcomes() {
    let limiter = paused(Quota::new().rpm(100).concurrency(1));
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let begin = limiter.now();
    let late = limiter.acquire("k", &Cost::new()).max_wait(Duration::from_secs(5)).await;
    assert!(matches!(late, Err(AcquireError::DeadlineExceeded { .. })), "{late:?}");
    assert_eq!(seconds(&limiter, begin), 5);
    let cancelled = waiter(&limiter, "k", &Cost::new());
    cancelled.abort();
    assert!(cancelled.await.unwrap_err().is_cancelled());
    assert_eq!(limiter.stats("k").waiting, 0);
    drop(held);
    settle_down().await;
    assert_eq!(limiter.stats("k").limits[0].used, 1, "neither was charged");
}

#[test]
fn s11_invalid_limit_window_and_settings_have_typed_errors() {
    assert_eq!(Limit::new(Dimension::Requests, 0, Window::MINUTE), None);
    let error: InvalidWindow = Window::new(Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("0ns"), "{error}");
    let empty = builder().quota("", Quota::new().rpm(1)).build().unwrap_err();
    assert_eq!(empty, BuildError::EmptyKey);
    let error = Margin::new(100, Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("less than 100 %"), "{error}");
    let nameless = Agent::join(&builder().build().unwrap(), Arc::new(LocalBus::new()), "");
    assert!(matches!(nameless, Err(NoAgentId { .. })));
}

#[tokio::test(start_paused = true)]
async fn s11_every_error_has_a_distinct_message() {
    let limiter = builder().quota("k", Quota::new().tpm(10)).max_waiting(0).build().unwrap();
    let mut errors: Vec<Box<dyn Error + Send + Sync>> = vec![
        Box::new(AcquireError::Closed),
        Box::new(AcquireError::Removed { key: "k".into() }),
        Box::new(limiter.acquire("k", &tokens(11)).await.unwrap_err()),
        Box::new(limiter.acquire("k", &tokens(1)).limits(&Quota::new()).try_now().unwrap_err()),
        Box::new(BuildError::EmptyKey),
        Box::new(Margin::new(100, Duration::ZERO).unwrap_err()),
        Box::new(Window::new(Duration::ZERO).unwrap_err()),
    ];
    drop(limiter.acquire("k", &tokens(10)).await.unwrap());
    errors.push(Box::new(limiter.try_acquire("k", &tokens(1)).unwrap_err()));
    errors.push(Box::new(limiter.acquire("k", &tokens(1)).await.unwrap_err()));
    let soon = limiter.acquire("k", &tokens(1)).max_wait(Duration::ZERO).await;
    errors.push(Box::new(soon.unwrap_err()));
    let texts: HashSet<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), errors.len(), "{texts:?}");
}
