//! Budgets of models that several limiters share, and to which the modes of the models count.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use tollgate::cluster::{OnFailure, Shared, SharedBuilder, SharingMode};
use tollgate::limiter::{Backend, Code, Limiter};
use tollgate::provider::ANTHROPIC;
use tollgate::quota::{Cost, Limit, Margin, Quota, Usd, Window};
use tollgate_testing::servers::Redis;

use super::shared::{closed, limiter as limiter_of, until};

fn limiter(builder: SharedBuilder) -> (Limiter, Arc<Shared>) {
    let shared = builder.connect().unwrap();
    let builder = Limiter::builder().margin(Margin::NONE).provider(ANTHROPIC);
    let builder = builder.quota("m", Quota::new().rpd(3).usd_per_day(Usd::from_micros(100_000)));
    let builder = builder.backend(Arc::clone(&shared) as Arc<dyn Backend>);
    (builder.build().unwrap(), shared)
}

#[test]
fn modes_count_to_the_shared_budget_of_their_model() {
    type Change = fn(SharedBuilder) -> SharedBuilder;
    let modes: [(&str, Change); 3] = [
        ("exact", |builder| builder),
        ("spread", SharedBuilder::spread),
        ("lease", |builder| builder.mode(SharingMode::Lease)),
    ];
    for (name, change) in modes {
        let redis = Redis::start();
        let (one, shared) = limiter(change(closed(&redis.url())));
        let (other, _) = limiter(change(closed(&redis.url())));
        let cost = |amount| Cost::new().usd(Usd::from_micros(amount));
        let first = one.try_acquire("m:fast", &cost(60_000)).unwrap();
        for key in ["m", "m:fast"] {
            let refused = other.try_acquire(key, &cost(50_000)).unwrap_err();
            assert_eq!((&*refused.key, refused.code), ("m", Code::LimitExceeded), "{name}");
            let refused = other.try_acquire(key, &Cost::new()).unwrap_err();
            assert_eq!((&*refused.key, refused.code), ("m", Code::UnknownPrice), "{name}");
        }
        first.settle(&cost(20_000).tokens(9));
        until("the end is acknowledged", || shared.status().unacknowledged == 0);
        other.try_acquire("m:fast", &cost(50_000)).unwrap().settle(&cost(50_000));
        // The model's requests per day are its own.
        let cheap = |limiter: &Limiter| limiter.try_acquire("m", &cost(1)).is_ok();
        assert_eq!([&one, &other, &one, &other].map(cheap), [true, true, true, false], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_waited_for_only_if_it_may_return() {
    let redis = Redis::start();
    let cost = |amount| Cost::new().usd(Usd::from_micros(amount));
    let quota = Quota::new().limit(Limit::usd(Usd::from_micros(100_000), Window::HOUR));
    for mode in [SharingMode::Exact, SharingMode::Lease] {
        let account = format!("{mode:?}");
        let builder = || Shared::builder(redis.url(), &account).on_failure(OnFailure::Closed);
        let connect = || builder().mode(mode).connect().unwrap();
        let (shared, of_other) = (connect(), connect());
        let [one, other] = [&shared, &of_other].map(|shared| limiter_of(shared, quota.clone()));
        one.try_acquire("m", &cost(40_000)).unwrap().settle(&cost(40_000));
        let held = one.try_acquire("m", &cost(40_000)).unwrap();
        let wait = || {
            let acquire = other.acquire("m", &cost(50_000)).max_wait(Duration::from_secs(600));
            tokio::time::timeout(SOON, acquire.into_future())
        };
        let waiting = tokio::spawn(wait());
        until("the second one waits", || other.stats("m").waiting == 1);
        held.settle(&cost(1));
        let permit = waiting.await.unwrap().expect("most of the money returned").unwrap();
        permit.settle(&cost(50_000));
        until("the ends are acknowledged", || of_other.status().unacknowledged == 0);
        let refused = wait().await.expect("nothing can return in time").unwrap_err();
        assert_eq!(refused.refused().unwrap().code, Code::LimitExceeded, "{mode:?}");
    }
}

/// The time after which a test fails.
const SOON: Duration = Duration::from_secs(10);
