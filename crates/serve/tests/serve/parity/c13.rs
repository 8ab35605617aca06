//! c13: every instance can serve every key, and an instance may fail.

use paceline::Limiter;
use paceline::quota::Cost;
use paceline_config::Config;

use paceline_testing::servers::Redis;

fn instance(redis: &Redis) -> Limiter {
    let text = format!(
        "quotas: {{'user-*': {{rpd: 20}}}}\n\
         cluster: {{redis: '{}', account: a, on_failure: closed, timeout: 2s}}",
        redis.url()
    );
    Config::parse(&text).unwrap().limiter().unwrap()
}

fn take(instance: &Limiter, key: &str) -> bool {
    instance.try_acquire(key, &Cost::new()).map(|permit| permit.settle(&Cost::new())).is_ok()
}

#[test]
fn c13_each_instance_decides_for_each_key() {
    let redis = Redis::start();
    let instances = [(); 4].map(|()| instance(&redis));
    for key in ["user-1", "user-2", "user-3"] {
        let taken = (0..100).filter(|at| take(&instances[at % 4], key)).count();
        assert_eq!(taken, 20, "{key}");
    }
}

#[test]
fn c13_keys_survive_a_dead_instance() {
    let redis = Redis::start();
    let (one, other) = (instance(&redis), instance(&redis));
    assert!((0..15).all(|_| take(&one, "user-1")));
    drop(one);
    assert_eq!((0..100).filter(|_| take(&other, "user-1")).count(), 5);
    let late = instance(&redis);
    assert!(!take(&late, "user-1") && take(&late, "user-2"));
}
