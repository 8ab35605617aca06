//! Budgets of models that several limiters share, and to which the modes of the models count.

use std::sync::Arc;

use tollgate::cluster::{SharedBuilder, SharingMode};
use tollgate::limiter::{Backend, Code, Limiter};
use tollgate::provider::ANTHROPIC;
use tollgate::quota::{Cost, Margin, Quota, Usd};
use tollgate_testing::servers::Redis;

use super::shared::{closed, until};

fn limiter(builder: SharedBuilder) -> (Limiter, Arc<tollgate::cluster::Shared>) {
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
