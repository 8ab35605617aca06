//! GoCC's protocol on several servers that share their limits over Redis.

use futures_util::future::join_all;
use paceline_serve::{Server, Tokens};
use reqwest::Client;

use super::rig::{HttpReply, http1};
use paceline_testing::servers::Redis;

/// Two servers that share one Redis.
struct Pair {
    servers: [Server; 2],
    client: Client,
    _redis: Redis,
}

impl Pair {
    /// Starts two servers; `quotas` is that section, `serve` has further settings.
    async fn new(quotas: &str, serve: &str) -> Self {
        let redis = Redis::start();
        let text = format!(
            "quotas: {{{quotas}}}\nmargin: {{percent: 0}}\n\
             cluster: {{redis: '{}', account: a, mode: exact, on_failure: closed, timeout: 10s}}\n\
             serve: {{listen: '127.0.0.1:0', window_millis: 3600000, {serve}}}",
            redis.url()
        );
        let server = async || {
            let config = paceline_serve::parse(&text).unwrap();
            let limiter = paceline_serve::limiter(&config).unwrap();
            Server::bind(config, limiter, Tokens::default()).await.unwrap()
        };
        Self { servers: [server().await, server().await], client: http1(), _redis: redis }
    }

    async fn post(&self, server: usize, path: &str) -> HttpReply {
        HttpReply::of(self.client.post(self.url(server, path))).await
    }

    async fn delete(&self, server: usize, path: &str) -> u16 {
        HttpReply::of(self.client.delete(self.url(server, path))).await.status
    }

    /// Waits until Redis knows of every grant that this server has returned.
    async fn all_returned(&self, server: usize) {
        let metrics =
            async || HttpReply::of(self.client.get(self.url(server, "/metrics"))).await.body;
        let known = "\npaceline_cluster_unacknowledged 0\n";
        while !metrics().await.contains(known) {}
    }

    fn url(&self, server: usize, path: &str) -> String {
        format!("http://{}{path}", self.servers[server].addr())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_a_concurrency_limit() {
    let pair = Pair::new("", "max_requests: 64").await;
    let replies = join_all((0..64).map(|at| pair.post(at % 2, "/rate/k"))).await;
    let statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [200; 64]);
    assert_eq!(
        [pair.post(0, "/rate/k").await.status, pair.post(1, "/rate/k").await.status],
        [429; 2]
    );

    let path = format!("/rate/k/{}", replies[0].body);
    assert_eq!(pair.delete(1, &path).await, 404, "the grant is unknown to the other server");
    assert_eq!(pair.delete(0, &path).await, 200);
    pair.all_returned(0).await;
    assert_eq!(pair.post(1, "/rate/k?canWait=true").await.status, 200);
    assert_eq!(pair.delete(0, &path).await, 404, "a second time");
    assert_eq!(
        [pair.post(0, "/rate/k").await.status, pair.post(1, "/rate/k").await.status],
        [429; 2]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_charged_across_servers() {
    let pair = Pair::new("k: {tpd: 100}", "").await;
    let granted = pair.post(0, "/rate/k?tokens=60").await;
    assert_eq!(granted.status, 200);
    assert_eq!(pair.post(1, "/rate/k?tokens=40").await.status, 200);
    assert_eq!(
        pair.delete(0, &format!("/rate/k/{}", granted.body)).await,
        404,
        "tokens cannot be returned"
    );
    assert_eq!(pair.post(0, "/rate/k?tokens=1").await.status, 429);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_flight_grant_expires_across_servers() {
    let pair = Pair::new("k: {rpd: 100, concurrency: 2}", "reservation_ttl: 1s").await;
    let first = [pair.post(0, "/rate/k").await, pair.post(0, "/rate/k").await];
    assert_eq!(first.each_ref().map(|reply| reply.status), [200; 2]);
    assert_eq!(pair.post(1, "/rate/k?canWait=true").await.status, 200);
    assert_eq!(pair.delete(0, &format!("/rate/k/{}", first[0].body)).await, 404);
}
