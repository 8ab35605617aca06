//! Budgets of models that several limiters share, and to which the modes of the models count.

use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{SharedBuilder, SharingMode};
use paceline::limiter::{AcquireError, Backend, Code, Limiter};
use paceline::provider::ANTHROPIC;
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Usd, Window};
use paceline_testing::servers::Redis;

use super::shared::closed;
use paceline_testing::until;

fn limiter(builder: SharedBuilder) -> (Limiter, Arc<paceline::cluster::Shared>) {
    let shared = builder.connect().unwrap();
    let builder = Limiter::builder().margin(Margin::NONE).provider(ANTHROPIC);
    let builder = builder.quota("m", Quota::new().rpd(3).usd_per_day(Usd::from_micros(100_000)));
    let builder = builder.backend(Arc::clone(&shared) as Arc<dyn Backend>);
    (builder.build().unwrap(), shared)
}

type Change = fn(SharedBuilder) -> SharedBuilder;
const MODES: [(&str, Change); 3] = [
    ("exact", |builder| builder),
    ("spread", SharedBuilder::spread),
    ("lease", |builder| builder.mode(SharingMode::Lease)),
];

#[test]
fn modes_count_to_the_shared_budget_of_their_model() {
    for (name, change) in MODES {
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
async fn deadline_before_a_spent_budget_renews_is_refused_at_once() {
    let window = Window::new(Duration::from_secs(31_536_000)).unwrap();
    let budget = Limit::new(Dimension::usd(), 100_000, window).unwrap();
    let algorithms = [Algorithm::FixedWindow, Algorithm::SlidingWindow, Algorithm::TokenBucket];
    // A request that is in flight holds the only slot, too, so that the time of that is unknown.
    let limits = [Quota::new(), Quota::new().concurrency(1)];
    let cases = algorithms
        .iter()
        .flat_map(|algorithm| limits.iter().map(move |limits| (*algorithm, limits)));
    for (name, change) in MODES {
        for (algorithm, limits) in cases.clone() {
            let redis = Redis::start();
            let quota = limits.clone().limit(budget.clone()).with_algorithm(algorithm);
            let limiter = || {
                let shared = change(closed(&redis.url())).connect().unwrap();
                let builder = Limiter::builder().margin(Margin::NONE).quota("m", quota.clone());
                builder.backend(shared as Arc<dyn Backend>).build().unwrap()
            };
            let [one, earlier, other] = std::array::from_fn(|_| limiter());
            let cost = |amount| Cost::new().usd(Usd::from_micros(amount));
            one.try_acquire("m", &cost(95_000)).unwrap().settle(&cost(95_000));
            let _in_flight = one.acquire("m", &cost(2_000)).max_wait(SOON).await.unwrap();
            let mut patient = Box::pin(earlier.acquire("m", &cost(20_000)));
            let refused = async {
                let acquire =
                    || other.acquire("m", &cost(20_000)).max_wait(Duration::from_secs(3_600));
                let both = futures_util::future::join(acquire(), acquire());
                tokio::time::timeout(SOON, both).await.expect("not within an hour")
            };
            let refused = tokio::select! {
                granted = &mut patient => panic!("{name} {algorithm:?}: {granted:?}"),
                refused = refused => refused,
            };
            for refused in <[_; 2]>::from(refused) {
                let Err(AcquireError::DeadlineExceeded { deadline, refused }) = refused else {
                    panic!("{name} {algorithm:?}: {refused:?}")
                };
                let wait = refused.retry_after().expect("the budget renews at a known time");
                assert!(refused.asked_at + wait > deadline, "{name} {algorithm:?}: {refused:?}");
            }
        }
    }
}

const SOON: Duration = Duration::from_secs(10);
