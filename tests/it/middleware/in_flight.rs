//! The end of a request's place in flight: responses without a body, upgrades, and bodies of an own `Observe`.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use paceline::limiter::Limiter;
use paceline::middleware::{
    ActualCost, Http, Observe, RateLimitLayer, ResponseGuard, map_reqwest_body,
};
use paceline::provider::COMPATIBLE_USAGE;
use paceline::quota::{Cost, Margin, Quota};
use reqwest::{Body, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::reqwest::{client, ok, respond_once};

/// Returns a limiter of one request in flight, and of 100 tokens.
fn limiter(key: &str) -> Limiter {
    let quota = Quota::new().concurrency(1).tpm(100);
    let builder = Limiter::builder().provider(COMPATIBLE_USAGE).margin(Margin::NONE);
    builder.quota(key, quota).build().unwrap()
}

fn in_flight(limiter: &Limiter, key: &str) -> u64 {
    let limits = limiter.stats(key).limits;
    limits.iter().find(|limit| limit.dimension.as_str() == "concurrency").unwrap().held
}

fn tokens_used(limiter: &Limiter, key: &str) -> u64 {
    let limits = limiter.stats(key).limits;
    limits.iter().find(|limit| limit.dimension.as_str() == "tokens").unwrap().used
}

async fn head<S>(service: S, headers: &str) -> Response
where
    S: Service<Request, Response = Response>,
    S::Error: std::fmt::Debug,
{
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n{headers}\r\n");
    let url = format!("{}/v1/models", respond_once(answer).await);
    service.oneshot(Request::new(http::Method::HEAD, url.parse().unwrap())).await.unwrap()
}

#[tokio::test]
async fn head_frees_its_place_without_reading_a_body() {
    for headers in ["", "content-encoding: gzip\r\n"] {
        let limiter = limiter("unknown");
        let layer = RateLimitLayer::new(limiter.clone());
        let whole = layer.clone().observe(Http::new(COMPATIBLE_USAGE).whole()).retry(1);
        let responses = [
            head(layer.layer(client()), headers).await,
            head(layer.clone().retry(1).layer(client()), headers).await,
            head(whole.layer(client()), headers).await,
        ];
        assert_eq!(in_flight(&limiter, "unknown"), 0, "{headers:?}");
        assert_eq!(responses.map(|response| response.status().as_u16()), [200; 3], "{headers:?}");
    }
}

/// An `Observe` whose guard lasts until the end of the body.
struct Reserved;

impl Observe<Response> for Reserved {
    type Observed = Response;

    fn observe(&self, response: Response, guard: ResponseGuard) -> Response {
        map_reqwest_body(response, |body| {
            Body::wrap(body.map_frame(move |frame| {
                let _ = &guard;
                frame
            }))
        })
    }
}

#[tokio::test]
async fn response_of_own_observe_keeps_url_and_place() {
    let limiter = limiter("unknown");
    let layer = RateLimitLayer::new(limiter.clone()).observe(Reserved);
    let url = format!("{}/v1/models?x=y", respond_once(ok("[]")).await);
    let request = Request::new(http::Method::GET, url.parse().unwrap());
    let response = layer.layer(client()).oneshot(request).await.unwrap();
    assert_eq!((response.url().as_str(), in_flight(&limiter, "unknown")), (&*url, 1));
    assert_eq!(response.text().await.unwrap(), "[]");
    assert_eq!(in_flight(&limiter, "unknown"), 0);
}

const UPGRADE: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";

#[tokio::test]
async fn upgraded_connection_keeps_its_place_while_held() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/realtime", server.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4_096]).await.unwrap();
        stream.write_all(UPGRADE.as_bytes()).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
    });
    let limiter = limiter("unknown");
    let mut request = Request::new(http::Method::GET, url.parse().unwrap());
    request.headers_mut().insert("connection", "upgrade".parse().unwrap());
    request.headers_mut().insert("upgrade", "x".parse().unwrap());
    let layer = RateLimitLayer::new(limiter.clone());
    let response = layer.layer(paceline_testing::http::http1()).oneshot(request).await.unwrap();
    let held = response.extensions().get::<ActualCost>().cloned().unwrap();
    let mut connection = response.upgrade().await.unwrap();
    let mut received = [0; 5];
    connection.read_exact(&mut received).await.unwrap();
    assert_eq!((&received, in_flight(&limiter, "unknown")), (b"hello", 1));
    held.set(Cost::new().tokens(70));
    drop((connection, held));
    assert_eq!((in_flight(&limiter, "unknown"), tokens_used(&limiter, "unknown")), (0, 70));
}

#[tokio::test]
async fn upgrade_keeps_its_place_until_response_is_dropped() {
    let limiter = limiter("unknown");
    let upgrade = service_fn(async |_: http::Request<String>| {
        http::Response::builder().status(101).body(Empty::<Bytes>::new())
    });
    for retries in [0, 2] {
        let layer = RateLimitLayer::new(limiter.clone()).retry(retries);
        let request = http::Request::new(String::new());
        let response = layer.layer(upgrade).oneshot(request).await.unwrap();
        assert_eq!(in_flight(&limiter, "unknown"), 1);
        drop(response);
        assert_eq!(in_flight(&limiter, "unknown"), 0);
    }
}

#[tokio::test]
async fn upgrade_in_server_mode_keeps_its_place_while_held() {
    let (limiter, held) = (limiter("service"), ActualCost::new());
    let handler = {
        let held = held.clone();
        service_fn(move |_: http::Request<String>| {
            let response = http::Response::builder().status(101).extension(held.clone());
            std::future::ready(response.body(Empty::<Bytes>::new()))
        })
    };
    let layer = RateLimitLayer::new(limiter.clone()).respond().scope("service");
    let response = layer.layer(handler.clone()).oneshot(http::Request::new(String::new()));
    drop(response.await.unwrap());
    drop(handler);
    assert_eq!(in_flight(&limiter, "service"), 1);
    held.set(Cost::new().tokens(40));
    drop(held);
    assert_eq!((in_flight(&limiter, "service"), tokens_used(&limiter, "service")), (0, 40));
}
