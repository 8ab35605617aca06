//! A listener hears everything, where a slow subscriber loses the oldest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate::limiter::{Event, Limiter};
use tollgate::quota::{Cost, Quota};
use tollgate::telemetry::Metrics;

use super::Figures;

const THREADS: usize = 8;
const EACH: usize = 5_000;
const LIMIT: usize = 25_000;

/// Takes what there is, from all threads; says how many were granted.
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
fn figures_are_exact_where_a_slow_subscriber_loses_events() {
    let limiter = limiter();
    let figures = Figures::of(&limiter, Metrics::new());
    let mut slow = limiter.subscribe();
    let granted = load(&limiter) as f64;
    let page = figures.page();
    assert_eq!(granted, LIMIT as f64);
    assert_eq!(page.sum("tollgate_granted_total", &[("key", "k")]), granted);
    let denied = [("key", "k"), ("dimension", "requests")];
    assert_eq!(page.sum("tollgate_denied_total", &denied), (THREADS * EACH) as f64 - granted);
    assert_eq!(page.sum("tollgate_settled_total", &[]), granted);
    assert_eq!(
        page.sum("tollgate_charged_tokens_total", &[("dimension", "tokens")]),
        3.0 * granted
    );
    assert_eq!(page.sum("tollgate_used", &[("dimension", "requests")]), granted);
    assert!(slow.try_recv().is_err(), "it was to lose some");
}

#[test]
fn a_listener_may_use_the_limiter_since_it_is_called_under_no_lock() {
    let limiter = limiter();
    let heard = Arc::new(AtomicUsize::new(0));
    let (counter, weak) = (Arc::clone(&heard), limiter.downgrade());
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
    limiter.quotas().set("k", &Quota::new().rpm(100));
    limiter.feedback().rate_limited("k", &tollgate::limiter::RateLimited::new(None));
    let _ = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    // Granted and settled thrice "other"; granted, released, changed, cooling, reduced, denied.
    assert_eq!(heard.load(Ordering::Relaxed), 3 * 2 + 6);
}

#[test]
fn listeners_and_subscribers_hear_the_same_whoever_came_first() {
    let limiter = limiter();
    let heard = Arc::new(AtomicUsize::new(0));
    let listen = || {
        let heard = Arc::clone(&heard);
        limiter.listen(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
        });
    };
    listen();
    drop(limiter.subscribe());
    limiter.try_acquire("k", &Cost::new()).unwrap().release();
    assert_eq!(heard.load(Ordering::Relaxed), 2);
    let mut subscriber = limiter.subscribe();
    listen();
    limiter.try_acquire("k", &Cost::new()).unwrap().release();
    assert_eq!(heard.load(Ordering::Relaxed), 2 + 4);
    assert_eq!(std::iter::from_fn(|| subscriber.try_recv().ok()).count(), 2);
}
