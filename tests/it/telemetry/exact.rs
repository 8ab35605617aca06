//! A listener receives every event, while a slow subscriber loses the oldest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use paceline::limiter::{Event, Limiter};
use paceline::quota::{Cost, Quota};
use paceline::telemetry::Metrics;

use super::MetricsExporter;

const THREADS: usize = 8;
const EACH: usize = 5_000;
const LIMIT: usize = 25_000;

/// Acquires from all threads and returns the number of granted requests.
fn load(limiter: &Limiter) -> usize {
    let cost = Cost::new().tokens(3);
    let granted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let taken = (0..EACH).filter(|_| limiter.try_acquire("k", &cost).is_ok()).count();
                granted.fetch_add(taken, Ordering::Relaxed);
            });
        }
    });
    granted.into_inner()
}

fn limiter() -> Limiter {
    Limiter::builder().quota("k", Quota::new().rpd(LIMIT as u64)).build().unwrap()
}

#[test]
fn metrics_are_exact_while_slow_subscriber_loses_events() {
    let limiter = limiter();
    let exporter = MetricsExporter::of(&limiter, Metrics::new());
    let mut slow = limiter.subscribe();
    let granted = load(&limiter) as f64;
    let page = exporter.page();
    assert_eq!(granted, LIMIT as f64);
    assert_eq!(page.sum("paceline_granted_total", &[("key", "k")]), granted);
    let denied = [("key", "k"), ("dimension", "requests")];
    assert_eq!(page.sum("paceline_denied_total", &denied), (THREADS * EACH) as f64 - granted);
    assert_eq!(page.sum("paceline_settled_total", &[]), granted);
    assert_eq!(
        page.sum("paceline_charged_tokens_total", &[("dimension", "tokens")]),
        3.0 * granted
    );
    assert_eq!(page.sum("paceline_used", &[("dimension", "requests")]), granted);
    assert!(slow.try_recv().is_err(), "the slow subscriber loses events");
}

#[test]
fn listener_may_call_the_limiter() {
    let limiter = limiter();
    let received = Arc::new(AtomicUsize::new(0));
    let (counter, weak) = (Arc::clone(&received), limiter.downgrade());
    limiter.listen(move |event| {
        counter.fetch_add(1, Ordering::Relaxed);
        let limiter = weak.upgrade().unwrap();
        let _ = (limiter.stats("k"), limiter.state().keys());
        if let Event::QuotaChanged { .. } | Event::CoolingDown { .. } | Event::Reduced { .. } =
            event
        {
            let _ = limiter.try_acquire("other", &Cost::new());
        }
    });
    limiter.try_acquire("k", &Cost::new()).unwrap().release();
    limiter.quotas().set("k", &Quota::new().rpm(100)).unwrap();
    limiter.feedback().rate_limited("k", &paceline::limiter::RateLimited::new(None));
    let _ = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    // Granted and settled three times for "other"; granted, released, changed, cooling down, reduced
    // and denied for "k".
    assert_eq!(received.load(Ordering::Relaxed), 3 * 2 + 6);
}

#[test]
fn listeners_and_subscribers_receive_the_same_events() {
    let limiter = limiter();
    let received = Arc::new(AtomicUsize::new(0));
    let listen = || {
        let received = Arc::clone(&received);
        limiter.listen(move |_| {
            received.fetch_add(1, Ordering::Relaxed);
        });
    };
    listen();
    drop(limiter.subscribe());
    limiter.try_acquire("k", &Cost::new()).unwrap().release();
    assert_eq!(received.load(Ordering::Relaxed), 2);
    let mut subscriber = limiter.subscribe();
    listen();
    limiter.try_acquire("k", &Cost::new()).unwrap().release();
    assert_eq!(received.load(Ordering::Relaxed), 2 + 4);
    assert_eq!(std::iter::from_fn(|| subscriber.try_recv().ok()).count(), 2);
}
