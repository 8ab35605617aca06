//! Upstreams that are unreachable, hang, reset connections, send invalid responses or never end.

use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::rig::{Proxy, TestUpstream, UpstreamExchange, chat, http, json};

/// Returns a closed port, which is reserved while the socket is held.
fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let addr = socket.local_addr().unwrap();
    (socket, addr)
}

#[tokio::test]
async fn request_that_the_upstream_refuses_costs_no_tokens() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "quotas: {gpt-4o: {tpd: 9000}}").await;
    for (status, is_charged) in [("413 Payload Too Large", false), ("500 Oops", true)] {
        let sent = tokio::spawn(proxy.chat("gpt-4o").send());
        up.request().await.answer(status, "", "{}").await;
        sent.await.unwrap().unwrap().text().await.unwrap();
        assert_eq!(proxy.used("gpt-4o") > 0, is_charged, "{status}");
    }
}

#[tokio::test]
async fn failed_connection_releases_the_reservation() {
    let mut up = TestUpstream::start().await;
    let (_socket, closed) = closed_port();
    let two = [("closed", closed, "openai"), ("up", up.addr, "openai")];
    let proxy = Proxy::with(
        &two,
        "mode: reject",
        "quotas: {gpt-4o: {rpd: 1}}\nmargin: {percent: 0, lag: 0s}",
    )
    .await;
    for _ in 0..3 {
        let post = http().post(proxy.url("/closed/v1/chat/completions"));
        let response = post.body(chat("gpt-4o")).send().await.unwrap();
        assert_eq!(response.status(), 502);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let problem = json(response).await;
        assert_eq!(problem["code"], "upstream_unreachable");
        assert_eq!(problem["error"]["type"], "server_error");
    }
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    up.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    assert_eq!(proxy.chat("gpt-4o").send().await.unwrap().status(), 429);
}

#[tokio::test]
async fn hanging_upstream_times_out() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {upstream_timeout: 1s}", "").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let mut request = up.request().await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!(response.status(), 504);
    assert_eq!(json(response).await["code"], "upstream_timeout");
    request.closed().await;
}

#[tokio::test]
async fn upstream_timeout_ends_with_the_headers() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {upstream_timeout: 1s}", "").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let mut request = up.request().await;
    request.begin_chunks().await;
    let body = tokio::spawn(sent.await.unwrap().unwrap().text());
    // Longer than the timeout for response headers.
    let hung = http().post(proxy.url("/up/v1/embeddings")).body(r#"{"model": "m"}"#).send();
    let (hung, mute) = tokio::join!(hung, up.request());
    assert_eq!(hung.unwrap().status(), 504);
    drop(mute);
    request.chunk("late").await;
    request.write("0\r\n\r\n").await;
    assert_eq!(body.await.unwrap().unwrap(), "late");
}

#[tokio::test]
async fn invalid_responses_and_resets_are_bad_gateway() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(100_000));
    for garbage in
        ["", "\0\u{1}garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nbad field\r\n\r\n", head, &endless]
    {
        let sent = tokio::spawn(proxy.chat("gpt-4o").send());
        let mut request = up.request().await;
        use tokio::io::AsyncWriteExt;
        let _ = request.stream.write_all(garbage.as_bytes()).await;
        drop(request);
        let response = sent.await.unwrap().unwrap();
        assert_eq!(response.status(), 502, "{}", &garbage[..garbage.len().min(40)]);
        let problem = json(response).await;
        assert_eq!(problem["code"], "upstream_failed");
        assert!(!problem.to_string().contains("garbage"), "{problem}");
    }
}

/// A request that a proxy has written to a reused connection.
struct Reused {
    up: TestUpstream,
    _proxy: Proxy,
    kept: TcpStream,
    sent: JoinHandle<u16>,
}

impl Reused {
    async fn start(method: &str) -> Self {
        let mut up = TestUpstream::start().await;
        let proxy = Proxy::to(up.addr, "").await;
        let send = || {
            let path = proxy.url("/up/v1/chat/completions");
            let request = http().request(method.parse().unwrap(), path).body(chat("gpt-4o"));
            tokio::spawn(async move { request.send().await.unwrap().status().as_u16() })
        };
        let mut sent = send();
        let mut first = up.request().await;
        loop {
            first.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
            assert_eq!(sent.await.unwrap(), 200);
            sent = send();
            // The proxy may open another connection if the first is not yet idle.
            let mut byte = [0];
            tokio::select! {
                peeked = first.stream.peek(&mut byte) => {
                    assert_eq!(peeked.unwrap(), 1);
                    return Self { up, _proxy: proxy, kept: first.stream, sent };
                }
                another = up.request() => first = another,
            }
        }
    }
}

#[tokio::test]
async fn request_on_a_closed_connection_is_resent() {
    for (method, yields) in [("POST", 0), ("GET", 0), ("POST", 100)] {
        let Reused { mut up, _proxy, kept, sent } = Reused::start(method).await;
        // The connection is closed with the request unread, which the system answers with a reset.
        let kept = kept.into_std().unwrap();
        kept.shutdown(Shutdown::Write).unwrap();
        // The proxy reads the end before the reset.
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        drop(kept);
        let again = up.request().await;
        assert!(again.line().starts_with(method) && again.body == chat("gpt-4o").as_bytes());
        again.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap(), 200, "{method}");
    }
}

#[tokio::test]
async fn request_on_a_reset_connection_is_resent() {
    for method in ["POST", "GET"] {
        let Reused { mut up, _proxy, kept, sent } = Reused::start(method).await;
        // The connection is closed with the request unread, as by a timeout of idle connections.
        drop(kept);
        up.request().await.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap(), 200, "{method}");
        assert!(up.is_idle());
    }
}

#[tokio::test]
async fn request_reset_late_is_resent_if_idempotent() {
    for (method, status) in [("POST", 502), ("GET", 200)] {
        let Reused { mut up, _proxy, kept, sent } = Reused::start(method).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(2)).await;
        tokio::time::resume();
        // The upstream may have processed the request.
        drop(kept);
        if status == 200 {
            up.request().await.answer("200 OK", "", "{}").await;
        }
        assert_eq!(sent.await.unwrap(), status, "{method}");
        assert!(up.is_idle());
    }
}

#[tokio::test]
async fn request_read_by_upstream_is_resent_if_idempotent() {
    for (method, status) in [("POST", 502), ("GET", 200)] {
        let Reused { mut up, _proxy, kept, sent } = Reused::start(method).await;
        drop(UpstreamExchange::read(kept).await.expect("the second request"));
        if status == 200 {
            up.request().await.answer("200 OK", "", "{}").await;
        }
        assert_eq!(sent.await.unwrap(), status, "{method}");
        assert!(up.is_idle());
    }
}

#[tokio::test]
async fn failure_after_several_attempts_prevents_retries() {
    let (_socket, closed) = closed_port();
    let mut up = TestUpstream::start().await;
    let two = [("up", up.addr, "openai"), ("closed", closed, "openai")];
    for (attempts, field) in [(1, None), (2, Some("false"))] {
        let proxy = Proxy::with(&two, "", &format!("retry: {{attempts: {attempts}}}")).await;
        let sent = tokio::spawn(proxy.chat("gpt-4o").send());
        for _ in 0..attempts {
            let fields = "retry-after-ms: 1\r\nx-should-retry: true\r\n";
            up.request().await.answer("500 Internal Server Error", fields, "{}").await;
        }
        let response = sent.await.unwrap().unwrap();
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()["x-should-retry"], field.unwrap_or("true"));
        let post = http().post(proxy.url("/closed/v1/chat/completions")).body(chat("gpt-4o"));
        let response = post.send().await.unwrap();
        assert_eq!(response.status(), 502);
        let should_retry =
            response.headers().get("x-should-retry").map(|value| value.to_str().unwrap());
        assert_eq!(should_retry, field, "{attempts}");
    }
}

#[tokio::test]
async fn slow_streams_do_not_block_others() {
    let mut up = TestUpstream::start().await;
    let mut slow = TestUpstream::start().await;
    let two = [("slow", slow.addr, "openai"), ("up", up.addr, "openai")];
    let proxy = Proxy::with(&two, "", "").await;
    let (mut held, client) = (Vec::new(), http());
    for n in 0..300 {
        let post = client.post(proxy.url("/slow/v1/chat/completions"));
        let sent = tokio::spawn(post.body(chat("gpt-4o")).send());
        let mut request = slow.request().await;
        if n % 2 == 0 {
            request.begin_chunks().await;
            request.chunk("d").await;
        }
        held.push((sent, request));
    }
    for _ in 0..20 {
        let sent = tokio::spawn(proxy.chat("gpt-4o").send());
        up.request().await.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), "{}");
    }
    drop(held);
}
