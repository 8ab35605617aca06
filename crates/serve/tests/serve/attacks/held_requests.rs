//! Requests over HTTP/2 that stay open: over all its connections, a client has only its part of the streams.

use futures_util::stream::{FuturesUnordered, StreamExt};
use paceline_testing::http::{http1, http2};
use reqwest::{Client, RequestBuilder};

use super::Answering;
use crate::proxy::rig::Proxy;

/// A server for 20 streams, behind a reverse proxy that states its clients. The key `full` has none left.
async fn start() -> Proxy {
    let serve = "trusted_proxies: ['127.0.0.1']\nmax_requests: 1\nwindow_millis: 3600000\nbounds: {streams: 20}";
    let proxy =
        Proxy::serving(Answering::start().await.addr, serve, "waiting: {max_wait: unlimited}")
            .await;
    assert_eq!(status(ask(&http1(), &proxy, "/rate/full", "10.0.0.9")).await, 200);
    proxy
}

fn ask(http: &Client, proxy: &Proxy, path: &str, client: &str) -> RequestBuilder {
    http.post(proxy.url(path)).header("x-forwarded-for", client)
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn open_requests_of_a_client_leave_room_for_others() {
    // Each client has one connection.
    for clients in [vec![http2()], (0..7).map(|_| http2()).collect()] {
        let proxy = start().await;
        let wait = |n: usize| {
            let http = &clients[n % clients.len()];
            ask(http, &proxy, "/rate/full?canWait=true", "10.0.0.1").send()
        };
        let mut waiting: FuturesUnordered<_> = (0..30).map(wait).collect();
        for _ in 0..20 {
            let refused = waiting.next().await.unwrap().unwrap();
            assert_eq!(refused.status(), 503);
            assert_eq!(refused.headers()["retry-after"], "1");
        }
        assert_eq!(proxy.limiter.stats("rate/full").waiting, 10);
        for client in ["10.0.0.2", "10.0.0.3"] {
            assert_eq!(
                status(ask(&http2(), &proxy, &format!("/rate/{client}"), client)).await,
                200
            );
        }
        // So is HTTP/1.1, where a client has one request per connection.
        assert_eq!(status(ask(&http1(), &proxy, "/rate/other", "10.0.0.1")).await, 200);
        assert_eq!(status(ask(&http2(), &proxy, "/rate/more", "10.0.0.1")).await, 503);
        // Cancelled requests give their part back.
        drop(waiting);
        while status(ask(&http2(), &proxy, "/rate/more", "10.0.0.1")).await == 503 {}
    }
}

#[tokio::test]
async fn long_heads_count_as_several_streams() {
    let proxy = start().await;
    let http = http2();
    let long = |n: usize| {
        let wait = ask(&http, &proxy, "/rate/full?canWait=true", "10.0.0.1");
        wait.header("x-long", "a".repeat(n)).send()
    };
    let mut waiting: FuturesUnordered<_> = (0..4).map(|_| long(15_000)).collect();
    // Each of them counts as four.
    for _ in 0..2 {
        assert_eq!(waiting.next().await.unwrap().unwrap().status(), 503);
    }
    assert_eq!(proxy.limiter.stats("rate/full").waiting, 2);
    let fields = (0..600).fold(ask(&http, &proxy, "/rate/a", "10.0.0.2"), |request, n| {
        request.header(format!("x-{n}"), "")
    });
    assert_eq!(status(fields).await, 503);
}
