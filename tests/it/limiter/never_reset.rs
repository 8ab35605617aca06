//! Limits that never reset.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use paceline::engine::Wait;
use paceline::limiter::{
    AcquireError, Backend, BuildError, Code, DefaultLimits, Ending, ManualClock, Reservation,
    ReserveError, Reserving, TokioClock, UnknownKey,
};
use paceline::quota::{Cost, Dimension, Limit, Quota, Share, Usd};

use super::{S, builder, settle_down, tokens};

const YEAR: Duration = Duration::from_secs(366 * 86_400);

fn totals() -> Quota {
    Quota::new().rpm(100).requests_total(3).tokens_total(100).usd_total(Usd::from_dollars(5))
}

/// Returns a cost of this many tokens and no money.
fn free(tokens: u64) -> Cost {
    Cost::new().tokens(tokens).usd(Usd::default())
}

#[test]
fn spent_total_never_comes_back() {
    let clock = ManualClock::new();
    let limiter = builder().quota("s:*", totals()).clock(clock.clone()).build().unwrap();
    let dollars = |dollars| Cost::new().usd(Usd::from_dollars(dollars));
    limiter.try_acquire("s:1", &dollars(3).tokens(60)).unwrap();
    for _ in 0..3 {
        clock.advance(YEAR);
        let refused = limiter.try_acquire("s:1", &dollars(3)).unwrap_err();
        assert_eq!((refused.code, refused.wait), (Code::TotalExceeded, Wait::Never));
        assert_eq!(
            refused.to_string(),
            "s:1: the request needs $3.00, and less is left of the total of $5.00; \
             reset the key or raise the limit"
        );
        let refused = limiter.try_acquire("s:1", &free(41)).unwrap_err();
        assert_eq!(
            (refused.code, refused.dimension),
            (Code::TotalExceeded, Some(Dimension::Tokens))
        );
    }
    let too_large = limiter.try_acquire("s:1", &dollars(6)).unwrap_err();
    assert_eq!(too_large.code, Code::ExceedsCapacity);
    limiter.try_acquire("s:1", &dollars(2).tokens(40)).unwrap();
    limiter.try_acquire("s:1", &free(0)).unwrap();
    assert_eq!(limiter.decide("s:1", &free(0)).code, Code::TotalExceeded);
    assert!(limiter.try_acquire("s:2", &dollars(5)).is_ok(), "another session has its own");
}

#[test]
fn used_total_is_kept_by_prune_and_key_floods() {
    let clock = ManualClock::new();
    let limiter = builder().quota("s:*", totals()).clock(clock.clone()).max_keys(10).build();
    let limiter = limiter.unwrap();
    limiter.try_acquire("s:1", &free(70)).unwrap();
    clock.advance(10 * YEAR);
    limiter.state().prune();
    for flood in 0..100 {
        drop(limiter.try_acquire(&format!("t:{flood}"), &free(0)));
    }
    assert!(limiter.try_acquire("s:1", &free(40)).is_err());
    limiter.reset("s:1");
    assert!(limiter.try_acquire("s:1", &free(40)).is_ok());
}

#[test]
fn raised_total_admits_the_rest() {
    let limiter = builder().quota("k", Quota::new().tokens_total(10)).build().unwrap();
    limiter.try_acquire("k", &tokens(10)).unwrap();
    limiter.quotas().set("k", &Quota::new().tokens_total(25)).unwrap();
    assert!(limiter.try_acquire("k", &tokens(16)).is_err());
    assert!(limiter.try_acquire("k", &tokens(15)).is_ok());
    limiter.quotas().set("k", &Quota::new().rpm(9).tokens_total(24)).unwrap();
    assert_eq!(limiter.decide("k", &tokens(1)).code, Code::TotalExceeded);
}

#[tokio::test(start_paused = true)]
async fn waiting_request_is_refused_once_total_is_spent() {
    let quota = Quota::new().tokens_total(100);
    let limiter = builder().quota("k", quota).clock(TokioClock::new()).build().unwrap();
    let [first, second] = [40, 40].map(|cost| limiter.try_acquire("k", &tokens(cost)).unwrap());
    let fits = tokio::spawn(limiter.acquire("k", &tokens(50)));
    let later = tokio::spawn(limiter.acquire("k", &tokens(30)));
    settle_down().await;
    first.settle(&tokens(10));
    let fits = fits.await.unwrap().unwrap();
    settle_down().await;
    assert!(!later.is_finished(), "the requests in flight may return what it needs");
    fits.settle(&tokens(50));
    second.settle(&tokens(40));
    let Err(AcquireError::Refused(refused)) = later.await.unwrap() else { panic!("granted") };
    assert_eq!(refused.code, Code::TotalExceeded);
}

#[tokio::test(start_paused = true)]
async fn total_takes_no_part_in_fair_turns() {
    let quota = Quota::new().rpm(60).requests_total(1_000);
    let limiter = builder().quota("k", quota).clock(TokioClock::new()).build().unwrap();
    (0..60).for_each(|_| drop(limiter.try_acquire("k", &Cost::new()).unwrap()));
    let begun = limiter.now();
    let ask = |flow: &str| tokio::spawn(limiter.acquire("k", &Cost::new()).flow(flow));
    let many: Vec<_> = (0..20).map(|_| ask("a")).collect();
    settle_down().await;
    let few: Vec<_> = (0..2).map(|_| ask("b")).collect();
    for request in few {
        request.await.unwrap().unwrap();
    }
    // Nothing is free for a minute. Of the first four that are admitted then, two are of the second flow.
    assert!(limiter.now() - begun <= 61 * S, "the second flow goes in turn with the first");
    drop(many);
}

#[test]
fn share_of_budget_is_never_exceeded() {
    let half = Share::percent(50).unwrap();
    let quota = Quota::new().tpm(100).tokens_total(1_000).usd_per_day(Usd::from_dollars(4));
    let limiter = builder().share(half).quota("k", quota).build().unwrap();
    let dollars = |dollars| Cost::new().usd(Usd::from_dollars(dollars));
    assert!(limiter.try_acquire("k", &free(80)).is_ok(), "the rate is exceeded once unused");
    assert_eq!(limiter.decide("k", &free(501)).code, Code::ExceedsCapacity);
    assert_eq!(limiter.decide("k", &dollars(3)).code, Code::ExceedsCapacity);
    assert!(limiter.try_acquire("k", &dollars(2).requests(0)).is_ok());
}

/// A backend that is never asked.
#[derive(Debug)]
struct Unasked;

impl Backend for Unasked {
    fn reserve(&self, _: &Arc<Reservation>) -> Reserving {
        Box::pin(async { Ok(()) })
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        Ok(())
    }

    fn end(&self, _: &Arc<Reservation>, _: Ending) {}

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

#[test]
fn total_with_backend_is_an_error() {
    let images = Limit::total(Dimension::custom("images"), 3);
    let with_backend = || builder().backend(Arc::new(Unasked));
    for quota in [totals(), Quota::new().rpm(5).limit(images)] {
        let error = with_backend().quota("k", quota.clone()).build().unwrap_err();
        assert_eq!(error, BuildError::TotalWithBackend { name: "k".to_owned() });
        let unknown = with_backend().unknown_key(UnknownKey::Quota(quota.clone()));
        assert!(
            unknown.build().unwrap_err().to_string().starts_with("unknown_key: a shared backend")
        );
        let limiter = with_backend().quota("k", Quota::new().rpm(1)).build().unwrap();
        assert!(limiter.quotas().set("k", &quota).is_err());
        assert_eq!(limiter.quotas().of("k"), Quota::new().rpm(1));
        let unknown = UnknownKey::Quota(quota.clone());
        assert!(limiter.quotas().set_unknown_key(unknown).is_err());
        let given = limiter.acquire("k", &Cost::new().usd(Usd::default())).limits(&quota).try_now();
        assert_eq!(given.unwrap_err().code, Code::MissingLimit);
        let kept = DefaultLimits::new(&limiter, &Quota::new().rpm(1));
        let default = DefaultLimits::new(&limiter, &quota);
        let free = Cost::new().usd(Usd::default());
        let given = || limiter.acquire("other", &free).default_limits(&default);
        assert_eq!(given().try_now().unwrap_err().code, Code::MissingLimit);
        let waits = given().into_future().now_or_never().expect("it doesn't wait");
        assert!(
            matches!(waits, Err(AcquireError::Refused(refused)) if refused.code == Code::MissingLimit)
        );
        // Where others apply: later ones, those of a quota, or those of the request.
        let mut replaced = limiter.acquire("other", &free).default_limits(&default);
        replaced.set_default_limits(&kept);
        let covered = limiter.acquire("k", &free).default_limits(&default);
        let given = limiter.acquire("other", &free).limits(&Quota::new().rpm(1));
        for acquire in [replaced, covered, given.default_limits(&default)] {
            let asks = acquire.into_future().now_or_never();
            assert!(!matches!(asks, Some(Err(AcquireError::Refused(_)))), "{asks:?}");
        }
    }
}
