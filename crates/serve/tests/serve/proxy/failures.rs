//! Upstreams that are away, hang, reset, send garbage or never end.

use std::net::{Shutdown, SocketAddr};

use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::rig::{Exchange, Proxy, Upstream, chat, http, json};

/// A port where nobody listens, nor can while it is held.
fn nobody() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let addr = socket.local_addr().unwrap();
    (socket, addr)
}

#[tokio::test]
async fn a_connection_that_fails_is_told_and_gives_its_reservation_back() {
    let mut up = Upstream::start().await;
    let (_held, away) = nobody();
    let two = [("away", away, "openai"), ("up", up.addr, "openai")];
    let proxy = Proxy::with(
        &two,
        "mode: reject",
        "quotas: {gpt-4o: {rpd: 1}}\nmargin: {percent: 0, lag: 0s}",
    )
    .await;
    for _ in 0..3 {
        let post = http().post(proxy.url("/away/v1/chat/completions"));
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
async fn an_upstream_that_hangs_is_given_up() {
    let mut up = Upstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {upstream_timeout: 1s}", "").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let mut request = up.request().await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!(response.status(), 504);
    assert_eq!(json(response).await["code"], "upstream_timeout");
    request.closed().await;
}

#[tokio::test]
async fn a_stream_may_take_longer_than_its_head() {
    let mut up = Upstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {upstream_timeout: 1s}", "").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let mut request = up.request().await;
    request.begin_chunks().await;
    let body = tokio::spawn(sent.await.unwrap().unwrap().text());
    // Longer than an upstream has for its head, by an upstream that has no time at all for it.
    let hung = http().post(proxy.url("/up/v1/embeddings")).body("{}").send();
    let (hung, mute) = tokio::join!(hung, up.request());
    assert_eq!(hung.unwrap().status(), 504);
    drop(mute);
    request.chunk("late").await;
    request.write("0\r\n\r\n").await;
    assert_eq!(body.await.unwrap().unwrap(), "late");
}

#[tokio::test]
async fn garbage_and_resets_are_told_and_nothing_of_them_passes() {
    let mut up = Upstream::start().await;
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

/// A request that a proxy has written to a connection which had an earlier one.
struct Reused {
    up: Upstream,
    _proxy: Proxy,
    kept: TcpStream,
    sent: JoinHandle<u16>,
}

impl Reused {
    async fn start(method: &str) -> Self {
        let mut up = Upstream::start().await;
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
            // The proxy may not have had the connection back yet, and opens another.
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
async fn request_on_a_connection_closed_before_is_sent_again() {
    for method in ["POST", "GET"] {
        let Reused { mut up, _proxy, kept, sent } = Reused::start(method).await;
        // It is ended, and nothing of the request is read: the system answers that with a reset.
        let kept = kept.into_std().unwrap();
        kept.shutdown(Shutdown::Write).unwrap();
        drop(kept);
        let again = up.request().await;
        assert!(again.line().starts_with(method) && again.body == chat("gpt-4o").as_bytes());
        again.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap(), 200, "{method}");
    }
}

#[tokio::test]
async fn request_on_a_connection_that_is_reset_is_sent_again_only_if_it_is_idempotent() {
    for (method, status) in [("POST", 502), ("GET", 200)] {
        let Reused { mut up, _proxy, kept, sent } = Reused::start(method).await;
        // It may have been read and worked on.
        drop(kept);
        if status == 200 {
            up.request().await.answer("200 OK", "", "{}").await;
        }
        assert_eq!(sent.await.unwrap(), status, "{method}");
        assert!(up.is_idle());
    }
}

#[tokio::test]
async fn request_that_was_read_is_sent_again_only_if_it_is_idempotent() {
    for (method, status) in [("POST", 502), ("GET", 200)] {
        let Reused { mut up, _proxy, kept, sent } = Reused::start(method).await;
        drop(Exchange::read(kept).await.expect("the second request"));
        if status == 200 {
            up.request().await.answer("200 OK", "", "{}").await;
        }
        assert_eq!(sent.await.unwrap(), status, "{method}");
        assert!(up.is_idle());
    }
}

#[tokio::test]
async fn failure_after_several_tries_asks_for_no_more() {
    let (_held, away) = nobody();
    let mut up = Upstream::start().await;
    let two = [("up", up.addr, "openai"), ("away", away, "openai")];
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
        let post = http().post(proxy.url("/away/v1/chat/completions")).body(chat("gpt-4o"));
        let response = post.send().await.unwrap();
        assert_eq!(response.status(), 502);
        let told = response.headers().get("x-should-retry").map(|value| value.to_str().unwrap());
        assert_eq!(told, field, "{attempts}");
    }
}

#[tokio::test]
async fn others_go_on_beside_hundreds_that_hang_or_drip() {
    let mut up = Upstream::start().await;
    let mut slow = Upstream::start().await;
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
