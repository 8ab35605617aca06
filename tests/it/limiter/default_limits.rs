//! Default limits for keys without a quota, per-request queue bounds, and tickets.

use paceline::limiter::{
    Acquire, AcquireError, Builder, Code, DefaultLimits, ManualClock, Regex, UnknownKey,
};
use paceline::quota::{Algorithm, Dimension, Limit, Margin, Window};
use paceline::{Cost, Limiter, Permit, Quota};
use paceline_limiter::seam;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

type Granted = Result<Permit, AcquireError>;

fn poll(acquire: &mut Acquire) -> Option<Granted> {
    match Pin::new(acquire).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(granted) => Some(granted),
        Poll::Pending => None,
    }
}

fn limiter(with: impl FnOnce(Builder) -> Builder) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let builder = Limiter::builder().clock(clock.clone()).margin(Margin::NONE);
    (with(builder).build().unwrap(), clock)
}

fn per_second(requests: u64) -> Quota {
    Quota::new().limit(Limit::new(Dimension::Requests, requests, Window::SECOND).unwrap())
}

/// Returns the number of requests admitted now, out of `of`.
fn admitted(limiter: &Limiter, key: &str, limits: &DefaultLimits, of: usize) -> usize {
    let ask = || limiter.acquire(key, &Cost::new()).default_limits(limits).try_now().is_ok();
    (0..of).filter(|_| ask()).count()
}

#[test]
fn default_limits_apply_only_to_keys_without_quota() {
    let (limiter, clock) = limiter(|builder| builder.quota("named", per_second(7)));
    let limits = DefaultLimits::new(&limiter, &per_second(3));
    assert_eq!(admitted(&limiter, "a", &limits, 10), 3);
    assert_eq!(admitted(&limiter, "b", &limits, 10), 3);
    assert_eq!(admitted(&limiter, "named", &limits, 10), 7);
    clock.advance(Duration::from_secs(1));
    assert_eq!(admitted(&limiter, "a", &limits, 10), 3, "without a margin the window is exact");
}

#[test]
fn default_limits_apply_under_each_unknown_key_policy() {
    for policy in [UnknownKey::Refuse, UnknownKey::Quota(per_second(1)), UnknownKey::Learn] {
        let (limiter, _) = limiter(|builder| builder.unknown_key(policy));
        let limits = DefaultLimits::new(&limiter, &per_second(3));
        assert_eq!(admitted(&limiter, "a", &limits, 10), 3);
    }
}

#[test]
fn default_limits_apply_to_key_refused_before() {
    let (limiter, _) = limiter(|builder| builder);
    drop(limiter.try_acquire("a", &Cost::new()).unwrap());
    limiter.quotas().set_unknown_key(UnknownKey::Refuse).unwrap();
    let limits = DefaultLimits::new(&limiter, &per_second(3));
    assert_eq!(admitted(&limiter, "a", &limits, 10), 3);
}

#[test]
fn differing_default_limits_share_one_count() {
    let (limiter, _) = limiter(|builder| builder);
    let [few, many] = [2, 5].map(|n| DefaultLimits::new(&limiter, &per_second(n)));
    assert_eq!(admitted(&limiter, "a", &few, 10), 2);
    assert_eq!(admitted(&limiter, "a", &many, 10), 3, "two are taken");
    assert_eq!(admitted(&limiter, "a", &few, 10), 0);
    assert_eq!(limiter.stats("a").limits[0].used, 5);
}

#[test]
fn quota_set_later_replaces_default_limits() {
    let (limiter, clock) = limiter(|builder| builder);
    let limits = DefaultLimits::new(&limiter, &per_second(3));
    for key in ["own", "glob-1", "regex1"] {
        assert_eq!(admitted(&limiter, key, &limits, 10), 3);
    }
    limiter.quotas().set("own", &per_second(4)).unwrap();
    limiter.quotas().set("glob-*", &per_second(5)).unwrap();
    limiter.quotas().set_regex(&Regex::new("regex[0-9]").unwrap(), &per_second(6)).unwrap();
    assert_eq!(admitted(&limiter, "own", &limits, 10), 1, "earlier usage is kept");
    assert_eq!(admitted(&limiter, "glob-1", &limits, 10), 2);
    assert_eq!(admitted(&limiter, "regex1", &limits, 10), 3);
    limiter.quotas().remove("glob-*");
    clock.advance(Duration::from_secs(1));
    assert_eq!(admitted(&limiter, "glob-1", &limits, 10), 3, "no quota matches any more");
}

#[test]
fn waiter_under_default_limits_survives_unrelated_quota() {
    let (limiter, clock) = limiter(|builder| builder);
    let limits = DefaultLimits::new(&limiter, &per_second(1));
    assert_eq!(admitted(&limiter, "a", &limits, 1), 1);
    let mut waiter = limiter.acquire("a", &Cost::new()).default_limits(&limits);
    assert!(poll(&mut waiter).is_none());
    limiter.quotas().set("other-*", &per_second(1)).unwrap();
    assert!(poll(&mut waiter).is_none());
    clock.advance(Duration::from_secs(1));
    assert!(poll(&mut waiter).unwrap().is_ok());
}

#[test]
fn waiter_falls_back_to_default_limits_when_quota_is_removed() {
    let (limiter, _) = limiter(|builder| builder.quota("a", per_second(1)));
    let limits = DefaultLimits::new(&limiter, &per_second(1));
    assert_eq!(admitted(&limiter, "a", &limits, 1), 1);
    let mut waiters = [(); 2].map(|()| limiter.acquire("a", &Cost::new()).default_limits(&limits));
    assert!(waiters.iter_mut().all(|waiter| poll(waiter).is_none()));
    limiter.quotas().remove("a");
    assert!(poll(&mut waiters[0]).unwrap().is_ok(), "the count was removed with the quota");
    assert!(poll(&mut waiters[1]).is_none());
}

#[test]
fn waiter_keeps_position_when_default_limits_change() {
    let (limiter, _) = limiter(|builder| builder);
    let [few, many] = [1, 2].map(|n| DefaultLimits::new(&limiter, &per_second(n)));
    assert_eq!(admitted(&limiter, "a", &few, 1), 1);
    let [mut first, mut second] =
        [(); 2].map(|()| limiter.acquire("a", &Cost::new()).default_limits(&few));
    assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
    second.set_default_limits(&many);
    assert!(poll(&mut second).is_none(), "the first waiter comes first");
    first.set_default_limits(&many);
    assert!(poll(&mut first).unwrap().is_ok());
    assert!(poll(&mut second).is_none(), "two are taken");
}

#[test]
fn max_waiting_of_request_bounds_queue_length() {
    let (limiter, _) = limiter(|builder| builder.quota("k", per_second(1)));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    let ask = |most| limiter.acquire("k", &Cost::new()).max_waiting(most);
    let mut first = ask(1);
    assert!(poll(&mut first).is_none());
    for most in [0, 1] {
        let error = poll(&mut ask(most)).unwrap().unwrap_err();
        assert_eq!(error, AcquireError::QueueFull { key: "k".into(), waiting: 1 });
    }
    assert!(poll(&mut ask(2)).is_none());
    limiter.quotas().set_max_waiting(0);
    assert!(poll(&mut ask(2)).is_none(), "the request's bound replaces the limiter's");
}

#[test]
fn ticket_given_back_refunds_and_wakes_waiter() {
    let (limiter, _) = limiter(|builder| builder.quota("k", per_second(1)));
    let ticket = limiter.try_acquire("k", &Cost::new()).unwrap().into_ticket().unwrap();
    let mut waiter = limiter.acquire("k", &Cost::new());
    assert!(poll(&mut waiter).is_none());
    assert!(seam::return_ticket(&limiter, "k", &Cost::new(), ticket));
    assert!(poll(&mut waiter).unwrap().is_ok());
    assert!(!seam::return_ticket(&limiter, "unknown", &Cost::new(), ticket));
}

#[test]
fn ticket_from_before_reset_or_past_window_refunds_zero() {
    let (limiter, clock) = limiter(|builder| builder.quota("k", per_second(2)));
    let take = || limiter.try_acquire("k", &Cost::new()).unwrap().into_ticket().unwrap();
    let early = take();
    limiter.reset("k");
    take();
    seam::return_ticket(&limiter, "k", &Cost::new(), early);
    assert_eq!(limiter.stats("k").limits[0].used, 1);
    let passed = take();
    clock.advance(Duration::from_secs(1));
    take();
    seam::return_ticket(&limiter, "k", &Cost::new(), passed);
    assert_eq!(limiter.stats("k").limits[0].used, 1);
}

#[test]
fn ticket_of_pruned_key_is_rejected() {
    let (limiter, _) = limiter(|builder| builder);
    let limits = DefaultLimits::new(&limiter, &per_second(1));
    let take = || limiter.acquire("k", &Cost::new()).default_limits(&limits).try_now();
    let early = take().unwrap().into_ticket().unwrap();
    limiter.reset("k");
    assert_eq!(limiter.state().prune(), 1);
    drop(take().unwrap());
    assert!(!seam::return_ticket(&limiter, "k", &Cost::new(), early));
    assert!(take().is_err());
}

#[test]
fn window_opened_by_refunded_ticket_keeps_start() {
    let quota = per_second(2).with_algorithm(Algorithm::FixedWindow);
    let (limiter, clock) = limiter(|builder| builder.quota("k", quota));
    let take = || limiter.try_acquire("k", &Cost::new());
    let first = take().unwrap().into_ticket().unwrap();
    clock.advance(Duration::from_millis(900));
    drop(take().unwrap());
    assert!(seam::return_ticket(&limiter, "k", &Cost::new(), first));
    drop(take().unwrap());
    assert!(take().is_err());
    clock.advance(Duration::from_millis(100));
    assert!(take().is_ok(), "the window began with the first request");
}

#[test]
fn permit_with_held_amounts_or_several_keys_has_no_ticket() {
    let quota = Quota::new().rpm(9).concurrency(1);
    let (limiter, _) = limiter(|builder| builder.quota("busy", quota).quota("k", per_second(9)));
    let busy = limiter.try_acquire("busy", &Cost::new()).unwrap().into_ticket().unwrap_err();
    assert_eq!(
        limiter.try_acquire("busy", &Cost::new()).unwrap_err().code,
        Code::ConcurrencyExceeded
    );
    busy.release();
    let both = limiter.acquire_all(&["k", "other"], &Cost::new()).try_now().unwrap();
    assert!(both.into_ticket().is_err());
}
