//! Services and gates whose limits other processes have used up.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::SharingMode;
use paceline::limiter::{Backend, Limiter};
use paceline::middleware::{Classified, RateLimitLayer};
use paceline::quota::{Cost, Margin, Quota, Usd};
use paceline_testing::servers::Redis;
use tokio::time::timeout;
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::load::Constant;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::shared::closed;

const CENT: Usd = Usd::from_micros(10_000);

fn limiter(redis: &Redis, mode: SharingMode) -> Limiter {
    let shared = closed(&redis.url()).mode(mode).connect().unwrap();
    let budget = || Quota::new().usd_per_day(Usd::from_micros(100_000));
    let builder = Limiter::builder().margin(Margin::NONE);
    let builder = builder
        .quota("spent", budget())
        .quota("left", Quota::new().usd_per_day(Usd::from_micros(1_000_000)));
    builder.backend(shared as Arc<dyn Backend>).build().unwrap()
}

/// Spends `count` cents.
async fn spend(limiter: &Limiter, key: &str, count: usize) {
    for _ in 0..count {
        let permit = limiter.acquire(key, &Cost::new().usd(CENT)).await.expect("it fits");
        permit.settle(&Cost::new().usd(CENT));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn balance_sends_nothing_to_an_account_that_another_process_has_spent() {
    for mode in [SharingMode::Exact, SharingMode::Lease] {
        let redis = Redis::start();
        let (one, other) = (limiter(&redis, mode), limiter(&redis, mode));
        // It knows the account before the other spends it.
        spend(&one, "spent", 1).await;
        spend(&other, "spent", 9).await;
        let endpoint = |key: &'static str| {
            let layer = RateLimitLayer::new(one.clone()).key(key);
            let layer = layer.classify(move |(): &()| Classified::new(key, Cost::new().usd(CENT)));
            let service = service_fn(move |(): ()| async move { Ok::<_, Infallible>(key) });
            Constant::new(layer.observe(|_: &&str| None).layer(service), 1_u32)
        };
        let mut service = Balance::new(ServiceList::new(["spent", "left"].map(endpoint)));
        let mut sent = Vec::new();
        // The first one learns that nothing is left.
        for _ in 0..30 {
            let call = service.ready().await.unwrap().call(());
            sent.extend(timeout(Duration::from_secs(2), call).await.ok().map(Result::unwrap));
        }
        assert!(sent.len() >= 29 && sent.iter().all(|key| *key == "left"), "{mode:?}: {sent:?}");
    }
}
