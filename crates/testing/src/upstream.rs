//! Upstream servers whose responses a test writes, and raw clients.

use std::net::SocketAddr;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Returns the body of a short chat request.
pub fn chat(model: &str) -> String {
    format!(
        r#"{{"model": "{model}", "max_tokens": 5, "messages": [{{"role": "user", "content": "Hi"}}]}}"#
    )
}

/// Creates a client without proxies, redirects, decompression and timeouts.
pub fn http() -> reqwest::Client {
    let builder = crate::http::builder().no_gzip().tcp_nodelay(true);
    builder.redirect(reqwest::redirect::Policy::none()).build().expect("a client")
}

pub async fn json(response: reqwest::Response) -> Value {
    let text = response.bytes().await.expect("a body");
    serde_json::from_slice(&text).expect("the body is JSON")
}

/// A server that passes each request to the test, which writes the response.
#[derive(Debug)]
pub struct TestUpstream {
    pub addr: SocketAddr,
    requests: mpsc::UnboundedReceiver<UpstreamExchange>,
}

/// A received request, and its connection for the response.
#[derive(Debug)]
pub struct UpstreamExchange {
    /// The request line and header fields, unchanged.
    pub head: String,
    pub body: Vec<u8>,
    pub stream: TcpStream,
}

impl TestUpstream {
    pub async fn start() -> Self {
        let (send, requests) = mpsc::unbounded_channel();
        let addr = listen(move |stream| {
            let send = send.clone();
            Box::pin(async move {
                if let Some(exchange) = UpstreamExchange::read(stream).await {
                    let _ = send.send(exchange);
                }
            })
        })
        .await;
        Self { addr, requests }
    }

    /// Waits for the next request.
    pub async fn request(&mut self) -> UpstreamExchange {
        self.requests.recv().await.expect("the upstream is listening")
    }

    /// Returns whether no further request has arrived.
    pub fn is_idle(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl UpstreamExchange {
    pub async fn read(mut stream: TcpStream) -> Option<Self> {
        let mut text = Vec::new();
        let end = loop {
            if let Some(at) = find(&text, b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut text).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(text[..end].to_vec()).expect("the head is UTF-8");
        let mut body = text.split_off(end);
        let length = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        while body.len() < length {
            if stream.read_buf(&mut body).await.ok()? == 0 {
                return None;
            }
        }
        Some(Self { head, body, stream })
    }

    /// Returns the value of a header field.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// Returns the request line.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub async fn write(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.expect("the client reads the response");
    }

    /// Sends a complete response and closes the connection.
    pub async fn answer(mut self, status: &str, fields: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{fields}content-length: {length}\r\n");
        self.write(format!("{head}connection: close\r\n\r\n{body}")).await;
    }

    /// Sends the head of a chunked response.
    pub async fn begin_chunks(&mut self) {
        let fields = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
        self.write(format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).await;
    }

    pub async fn chunk(&mut self, text: &str) {
        self.write(format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    /// Waits until the client closes the connection.
    pub async fn closed(&mut self) {
        let mut rest = [0; 1_024];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }
}

/// Listens on a free port, and calls `serve` with each connection in a separate task.
pub async fn listen(
    serve: impl Fn(TcpStream) -> BoxFuture<'static, ()> + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addr = listener.local_addr().expect("the bound address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a connection");
            tokio::spawn(serve(stream));
        }
    });
    addr
}

/// Sends text on a new connection, and returns the text that the server sends until it closes the
/// connection.
///
/// # Panics
/// If the connection fails or the response is not UTF-8.
pub async fn raw(addr: SocketAddr, text: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(addr).await.expect("a connection");
    stream.write_all(text.as_ref()).await.expect("the server reads the request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("the server closes the connection");
    String::from_utf8(answer).expect("the response is UTF-8")
}

/// Returns the value of a header field in a head; the case of the name is ignored.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1).take_while(|line| !line.is_empty());
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}
