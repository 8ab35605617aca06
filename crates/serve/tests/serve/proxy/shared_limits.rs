//! Several proxies that share their limits over Redis.

use std::net::SocketAddr;

use futures_util::future::join_all;
use paceline_simulate::Settings;

use super::rig::{Proxy, chat, http};
use paceline_testing::servers::Redis;

#[tokio::test]
async fn two_proxies_share_limits_over_redis() {
    let redis = Redis::start();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    // Refuses nothing, which would pause the key.
    let provider =
        paceline_simulate::SimulatedServer::bind(Settings::default().with_rpm(4_000), any);
    let provider = provider.await.unwrap();
    let shared = format!(
        "providers: [openai]\nquotas: {{gpt-4o: {{rpm: 40}}}}\n\
         margin: {{percent: 0, lag: 0s}}\n\
         cluster: {{redis: '{}', account: a, mode: exact, on_failure: closed, timeout: 5s}}",
        redis.url()
    );
    let proxies = [
        Proxy::serving(provider.addr(), "mode: reject", &shared).await,
        Proxy::serving(provider.addr(), "mode: reject", &shared).await,
    ];
    let client = http();
    let send = |n: usize| {
        let url = proxies[n % 2].url("/up/v1/chat/completions");
        let post = client.post(url).body(chat("gpt-4o"));
        async move { post.send().await.unwrap().status().as_u16() }
    };
    let begin = proxies[0].limiter.now();
    let statuses = join_all((0..200).map(send)).await;
    let passed = statuses.iter().filter(|&&status| status == 200).count() as u64;
    let refused = statuses.iter().filter(|&&status| status == 429).count() as u64;
    assert_eq!(passed + refused, 200, "{statuses:?}");
    let counted = provider.stats().total;
    assert_eq!((counted.admitted, counted.refused), (passed, 0));
    // The capacity of the bucket plus the refill during the test.
    let most = 40.0 + (proxies[0].limiter.now() - begin).as_secs_f64() * 40.0 / 60.0;
    assert!(passed >= 40 && passed as f64 <= most, "{passed} of {most}");
    for (half, of) in [(0, "first"), (1, "second")] {
        let own = statuses.iter().skip(half).step_by(2);
        assert!(own.filter(|&&status| status == 200).count() > 0, "the {of} proxy gets a share");
    }
}
