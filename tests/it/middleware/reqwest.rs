//! The layer around a `reqwest::Client`, over real connections.

use paceline::limiter::Limiter;
use paceline::middleware::RateLimitLayer;
use paceline::provider::COMPATIBLE_USAGE;
use paceline::quota::Quota;
use reqwest::{Body, Client, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

use super::inner::Frames;
use super::{USAGE, available, held};

pub(super) fn client() -> Client {
    paceline_testing::http::client()
}

/// Returns a limiter of 10,000 tokens per minute for `gpt-4o`, on the system clock.
pub(super) fn limiter() -> Limiter {
    let quota = Quota::new().tpm(10_000);
    Limiter::builder().provider(COMPATIBLE_USAGE).quota("gpt-4o", quota).build().unwrap()
}

fn post(url: &str, body: impl Into<Body>) -> Request {
    let mut request = Request::new(http::Method::POST, url.parse().unwrap());
    *request.body_mut() = Some(body.into());
    request
}

pub(super) const CHAT: &str =
    r#"{"model": "gpt-4o", "max_tokens": 500, "messages": [{"role": "user", "content": "hi"}]}"#;

/// Starts a server that sends these bytes to one request. Returns its base URL.
pub(super) async fn respond_once(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4_096];
        let _ = stream.read(&mut request).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    url
}

pub(super) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nx-one: 1\r\n\r\n{body}", body.len())
}

/// Returns a URL that refuses connections as long as the socket is kept.
pub(super) fn closed_port() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!("http://{}/v1/chat/completions", socket.local_addr().unwrap());
    (socket, url)
}

#[tokio::test]
async fn response_keeps_url_head_and_body_and_settles() {
    let limiter = limiter();
    let mut service = RateLimitLayer::new(limiter.clone()).layer(client());
    let url = format!("{}/v1/chat/completions?x=y", respond_once(ok(USAGE)).await);
    let response = service.ready().await.unwrap().call(post(&url, CHAT)).await.unwrap();
    assert!(available(&limiter, "gpt-4o")[0] <= 9_500);
    assert_eq!(response.url().as_str(), url);
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-one"]),
        (200, &"1".parse().unwrap())
    );
    assert_eq!(response.content_length(), Some(USAGE.len() as u64));
    assert!(response.remote_addr().is_some());
    assert_eq!(response.text().await.unwrap(), USAGE);
    assert_eq!((held(&limiter, "gpt-4o"), available(&limiter, "gpt-4o")), (vec![0], vec![9_979]));
}

/// Sends to a closed port and returns the tokens left of 10,000.
async fn left_after_connect_error<S>(limiter: &Limiter, service: S) -> u64
where
    S: Service<Request, Response = Response>,
{
    let (_socket, url) = closed_port();
    assert!(service.oneshot(post(&url, CHAT)).await.is_err());
    assert_eq!(held(limiter, "gpt-4o"), [0]);
    available(limiter, "gpt-4o")[0]
}

#[tokio::test]
async fn request_without_connection_is_not_charged() {
    let limiter = limiter();
    let layer = RateLimitLayer::new(limiter.clone());
    assert_eq!(left_after_connect_error(&limiter, layer.layer(client())).await, 10_000);
    // The same holds with other layers in between.
    let boxed =
        ServiceBuilder::new().layer(layer.clone()).map_err(BoxError::from).service(client());
    assert_eq!(left_after_connect_error(&limiter, boxed).await, 10_000);
    let twice = ServiceBuilder::new().layer(layer.clone()).layer(layer).service(client());
    assert_eq!(left_after_connect_error(&limiter, twice).await, 10_000);
}

#[tokio::test]
async fn request_refused_by_inner_layer_is_not_charged() {
    let limiter = limiter();
    let layer = RateLimitLayer::new(limiter.clone());
    let scarce = Limiter::builder().quota("team", Quota::new().tpm(1)).build().unwrap();
    let team = RateLimitLayer::new(scarce).key("team");
    let stack = ServiceBuilder::new().layer(layer).layer(team).service(client());
    assert_eq!(left_after_connect_error(&limiter, stack).await, 10_000);
}

#[tokio::test]
async fn request_with_broken_connection_keeps_charge() {
    let limiter = limiter();
    let layer = RateLimitLayer::new(limiter.clone());
    let reserved = {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/chat/completions", silent.local_addr().unwrap());
        let sent = layer.layer(client()).oneshot(post(&url, CHAT));
        let hang_up = async {
            let (mut stream, _) = silent.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4_096]).await.unwrap();
        };
        let (sent, ()) = tokio::join!(sent, hang_up);
        sent.unwrap_err();
        10_000 - available(&limiter, "gpt-4o")[0]
    };
    assert!(reserved >= 500, "{reserved}");
    // A partial body also keeps the charge.
    let url =
        respond_once("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"usage\"".to_owned()).await;
    let url = format!("{url}/v1/chat/completions");
    let response = layer.layer(client()).oneshot(post(&url, CHAT)).await.unwrap();
    response.bytes().await.unwrap_err();
    assert_eq!(available(&limiter, "gpt-4o"), [10_000 - 2 * reserved]);
}

#[tokio::test]
async fn streamed_request_is_estimated_from_size() {
    let limiter = Limiter::builder().quota("unknown", Quota::new().tpm(10_000)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let (_socket, url) = closed_port();
    let charged = |request: Request| {
        let mut service = layer.layer(client());
        let future = service.call(request);
        let taken = held(&limiter, "unknown")[0];
        drop(future);
        taken
    };
    let chunked = || Body::wrap(Frames::from("12345678"));
    assert_eq!(charged(post(&url, chunked())), 0);
    assert_eq!(charged(post(&url, Body::wrap(Frames::from("12345678").with_known_end()))), 2);
    let mut stated = post(&url, chunked());
    stated.headers_mut().insert("content-length", 4_000.into());
    assert_eq!(charged(stated), 1_000);
}

#[tokio::test]
async fn request_without_body_counts_as_one_request() {
    let limiter = Limiter::builder().quota("unknown", Quota::new().rpm(9).tpm(9)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let url = respond_once(ok("{}")).await;
    let request = Request::new(http::Method::GET, url.parse().unwrap());
    layer.layer(client()).oneshot(request).await.unwrap().bytes().await.unwrap();
    assert_eq!(available(&limiter, "unknown"), [8, 9]);
}

mod simulated {
    use paceline::quota::{Cost, Dimension, Limit, Margin};
    use paceline_simulate::{OutputSize, Settings, SimulatedServer, Stats};
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;

    const BURST: Duration = Duration::from_secs(1);

    /// Starts a server that admits a burst of 30 requests and then 30 per second, by its limits of
    /// requests and of tokens alike.
    async fn server() -> (SimulatedServer, String) {
        let settings = Settings::default()
            .with_rpm(1_800)
            .with_tpm(1_800 * 60)
            .with_burst(BURST)
            .with_output(OutputSize::Fixed(9));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = SimulatedServer::bind(settings, any).await.unwrap();
        let url = format!("http://{}/v1/chat/completions", server.addr());
        (server, url)
    }

    fn layer() -> RateLimitLayer {
        let limit = |dimension, amount| {
            Limit::per_minute(dimension, amount).map(|limit| limit.with_burst(amount / 60))
        };
        let quota = Quota::new()
            .limit(limit(Dimension::Requests, 1_800))
            .limit(limit(Dimension::Tokens, 1_800 * 60));
        let limiter = Limiter::builder()
            .provider(paceline::provider::OPENAI)
            .quota("gpt-4o", quota)
            .margin(Margin::new(2, Duration::from_millis(250)).unwrap())
            .build()
            .unwrap();
        RateLimitLayer::new(limiter)
    }

    /// Sends 60 concurrent chat requests, half of them for a stream.
    async fn send_all<S>(service: S, url: &str) -> Vec<u16>
    where
        S: Service<Request, Response = Response> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: std::fmt::Debug + Send,
    {
        let sent: Vec<_> = (0..60)
            .map(|number| {
                let body = serde_json::json!({
                    "model": "gpt-4o",
                    "max_tokens": 50,
                    "stream": number % 2 == 0,
                    "stream_options": {"include_usage": number % 2 == 0},
                    "messages": [{"role": "user", "content": "Say this is a test"}],
                });
                let sent = service.clone().oneshot(post(url, body.to_string()));
                tokio::spawn(async move {
                    let response = sent.await.unwrap();
                    let status = response.status().as_u16();
                    assert!(!response.bytes().await.unwrap().is_empty());
                    status
                })
            })
            .collect();
        let mut statuses = Vec::new();
        for sent in sent {
            statuses.push(sent.await.unwrap());
        }
        statuses
    }

    async fn end(server: SimulatedServer) -> Stats {
        server.shutdown().await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sixty_concurrent_requests_receive_no_429() {
        let (server, url) = server().await;
        let statuses = send_all(layer().layer(client()), &url).await;
        assert_eq!(statuses, [200; 60]);
        let total = end(server).await.total;
        assert_eq!((total.received, total.admitted, total.refused), (60, 60, 0));
    }

    #[tokio::test]
    async fn sixty_concurrent_requests_without_layer_receive_429() {
        let (server, url) = server().await;
        let statuses = send_all(client(), &url).await;
        assert!(statuses.contains(&429));
        assert!(end(server).await.total.refused > 0);
    }

    #[tokio::test]
    async fn json_and_streams_settle_by_stated_usage() {
        let (_server, url) = server().await;
        for stream in [false, true] {
            let limiter = limiter();
            let mut service = RateLimitLayer::new(limiter.clone()).layer(client());
            let body = serde_json::json!({
                "model": "gpt-4o",
                "max_tokens": 500,
                "stream": stream,
                "stream_options": {"include_usage": stream},
                "messages": [{"role": "user", "content": "Say this is a test"}],
            });
            let sent = service.ready().await.unwrap().call(post(&url, body.to_string()));
            let response = sent.await.unwrap();
            assert!(held(&limiter, "gpt-4o")[0] >= 500);
            let text = response.text().await.unwrap();
            let last = text.lines().rfind(|line| line.contains("\"usage\":{")).unwrap();
            let last = last.strip_prefix("data: ").unwrap_or(last);
            let usage: serde_json::Value = serde_json::from_str(last).unwrap();
            let total = usage["usage"]["total_tokens"].as_u64().unwrap();
            assert_eq!(held(&limiter, "gpt-4o"), [0]);
            assert_eq!(available(&limiter, "gpt-4o"), [10_000 - total], "stream: {stream}");
        }
    }

    #[tokio::test]
    async fn limits_are_learned_from_server_headers() {
        let (_server, url) = server().await;
        let limiter = Limiter::builder().provider(COMPATIBLE_USAGE).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone());
        let body = CHAT.replace("500", "9");
        drop(layer.layer(client()).oneshot(post(&url, body)).await.unwrap());
        let learned: Vec<u64> = limiter.stats("gpt-4o").limits.iter().map(|l| l.limit).collect();
        assert_eq!(learned, [1_800, 108_000]);
        assert!(limiter.try_acquire("gpt-4o", &Cost::new().requests(1_801)).is_err());
    }
}

/// reqwest decompresses the response inside the layer.
#[tokio::test]
async fn usage_in_body_decompressed_by_reqwest_is_read() {
    let limiter = limiter();
    let packed = super::wiring::gzip(USAGE);
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ";
    let mut answer = format!("{head}{}\r\n\r\n", packed.len()).into_bytes();
    answer.extend(packed);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4_096]).await.unwrap();
        stream.write_all(&answer).await.unwrap();
    });
    let service = RateLimitLayer::new(limiter.clone()).layer(client());
    let response = service.oneshot(post(&url, CHAT)).await.unwrap();
    assert_eq!(response.text().await.unwrap(), USAGE);
    assert_eq!(available(&limiter, "gpt-4o"), [10_000 - 21]);
}
