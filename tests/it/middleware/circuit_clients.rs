//! Outages of a server, as the errors of clients show them.

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use paceline::limiter::{Limiter, Outage, TokioClock};
use paceline::middleware::RateLimitLayer;
use reqwest_middleware::ClientBuilder;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

use super::reqwest::{client, closed_port, limiter};
use super::unsent::{Post, resets_after};

/// Fails five requests, and returns the outage that they show.
async fn fails_five<S, R>(limiter: &Limiter, service: S, url: &str) -> Outage
where
    S: Service<R> + Clone,
    R: Post,
{
    for _ in 0..5 {
        assert_eq!(limiter.stats("gpt-4o").outage, None, "{url}");
        assert!(service.clone().oneshot(R::post(url)).await.is_err());
    }
    limiter.stats("gpt-4o").outage.expect("the server is down")
}

#[tokio::test]
async fn unreachable_or_broken_server_opens_circuit_of_each_client() {
    let hyper = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let (_socket, closed) = closed_port();
    let reset = resets_after("").await;
    for (url, text) in [(closed, "cannot connect: Connection refused"), (reset, "")] {
        let outage = async |number| {
            let limiter = limiter();
            let layer = RateLimitLayer::new(limiter.clone()).wait_for_server();
            let boxed = ServiceBuilder::new().map_err(BoxError::from).service(client());
            match number {
                0 => {
                    let service = layer.layer(hyper.clone());
                    fails_five::<_, http::Request<Full<Bytes>>>(&limiter, service, &url).await
                }
                1 => fails_five::<_, reqwest::Request>(&limiter, layer.layer(boxed), &url).await,
                2 => fails_five::<_, reqwest::Request>(&limiter, layer.layer(client()), &url).await,
                _ => {
                    let chain = ClientBuilder::new(client()).with(layer).build();
                    fails_five::<_, reqwest::Request>(&limiter, chain, &url).await
                }
            }
        };
        for number in 0..4 {
            let outage = outage(number).await;
            assert!(outage.text.starts_with(text) && !outage.text.is_empty(), "{outage:?}");
            assert!(outage.status.is_none() && !outage.text.contains("127.0.0.1"), "{outage:?}");
        }
    }
}

/// A closed port can't be the fault of a request, even of one that is sent again and again.
#[tokio::test(start_paused = true)]
async fn single_request_opens_circuit_of_unreachable_server() {
    let (_socket, url) = closed_port();
    let limiter = Limiter::builder().clock(TokioClock::new()).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).wait_for_server().retry(4);
    let client = layer.layer(client());
    client.oneshot(reqwest::Request::post(&url)).await.unwrap_err();
    assert!(limiter.stats("gpt-4o").outage.is_some());
}

#[tokio::test]
async fn text_of_an_error_without_a_source_is_kept() {
    // A text with a URL may hold an API key.
    let with_url = "error sending request for url (http://up/v1?key=secret)";
    for (text, kept) in
        [("the tunnel is closed", "the tunnel is closed"), (with_url, "the connection failed")]
    {
        let limiter = limiter();
        let layer = RateLimitLayer::new(limiter.clone()).wait_for_server();
        let service = layer.layer(tower::service_fn(async |_: http::Request<Full<Bytes>>| {
            Err::<http::Response<Full<Bytes>>, _>(BoxError::from(text))
        }));
        let outage = fails_five(&limiter, service, "http://up/v1/chat/completions").await;
        assert_eq!(&*outage.text, kept);
    }
}

/// Who hasn't asked for it gets failures as they come.
#[tokio::test]
async fn layer_that_doesnt_wait_for_server_passes_failures_on() {
    let (_socket, url) = closed_port();
    let limiter = limiter();
    let client = RateLimitLayer::new(limiter.clone()).layer(client());
    for _ in 0..20 {
        client.clone().oneshot(reqwest::Request::post(&url)).await.unwrap_err();
    }
    assert_eq!(limiter.stats("gpt-4o").outage, None);
}

#[tokio::test]
async fn responses_that_are_cut_off_open_circuit() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
    let url = resets_after(head).await;
    let limiter = limiter();
    let client = RateLimitLayer::new(limiter.clone()).wait_for_server().layer(client());
    for _ in 0..5 {
        assert_eq!(limiter.stats("gpt-4o").outage, None);
        let response = client.clone().oneshot(reqwest::Request::post(&url)).await.unwrap();
        response.bytes().await.unwrap_err();
    }
    let outage = limiter.stats("gpt-4o").outage.expect("the server is down");
    assert_eq!(&*outage.text, "the response was cut off");
}
