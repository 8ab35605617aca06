//! Upstreams that a test answers by hand, and clients that write what they like.

use std::net::SocketAddr;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The body of a short chat.
pub fn chat(model: &str) -> String {
    format!(
        r#"{{"model": "{model}", "max_tokens": 5, "messages": [{{"role": "user", "content": "Hi"}}]}}"#
    )
}

/// A client that goes straight there, follows nothing and waits as long as it takes.
pub fn http() -> reqwest::Client {
    let builder = crate::http::builder().no_gzip().tcp_nodelay(true);
    builder.redirect(reqwest::redirect::Policy::none()).build().expect("a client")
}

pub async fn json(response: reqwest::Response) -> Value {
    let text = response.bytes().await.expect("a body");
    serde_json::from_slice(&text).expect("it is JSON")
}

/// Listens, and hands each request that comes to the test, which answers it.
#[derive(Debug)]
pub struct Upstream {
    pub addr: SocketAddr,
    requests: mpsc::UnboundedReceiver<Exchange>,
}

/// A request that an upstream has read, and the connection that waits for its answer.
#[derive(Debug)]
pub struct Exchange {
    /// Its first line and fields, as they came.
    pub head: String,
    pub body: Vec<u8>,
    pub stream: TcpStream,
}

impl Upstream {
    pub async fn start() -> Self {
        let (send, requests) = mpsc::unbounded_channel();
        let addr = listen(move |stream| {
            let send = send.clone();
            Box::pin(async move {
                if let Some(exchange) = Exchange::read(stream).await {
                    let _ = send.send(exchange);
                }
            })
        })
        .await;
        Self { addr, requests }
    }

    /// The next request.
    pub async fn request(&mut self) -> Exchange {
        self.requests.recv().await.expect("it listens")
    }

    /// Returns `true` if no unexpected request has arrived.
    pub fn is_idle(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl Exchange {
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
        let head = String::from_utf8(text[..end].to_vec()).expect("a head is text");
        let mut body = text.split_off(end);
        let length = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        while body.len() < length {
            if stream.read_buf(&mut body).await.ok()? == 0 {
                return None;
            }
        }
        Some(Self { head, body, stream })
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// The first line.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub async fn write(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.expect("it is read");
    }

    /// Answers with these fields and this body, and is done.
    pub async fn answer(mut self, status: &str, fields: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{fields}content-length: {length}\r\n");
        self.write(format!("{head}connection: close\r\n\r\n{body}")).await;
    }

    /// Begins a body that ends when it says so.
    pub async fn begin_chunks(&mut self) {
        let fields = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
        self.write(format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).await;
    }

    pub async fn chunk(&mut self, text: &str) {
        self.write(format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    /// Waits until the other side has closed the connection.
    pub async fn closed(&mut self) {
        let mut rest = [0; 1_024];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }
}

/// Does this with each connection to a port of its own.
pub async fn listen(
    serve: impl Fn(TcpStream) -> BoxFuture<'static, ()> + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addr = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a connection");
            tokio::spawn(serve(stream));
        }
    });
    addr
}

/// Writes this on a connection of its own, and reads to the end of what comes back.
pub async fn raw(addr: SocketAddr, text: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(addr).await.expect("it listens");
    stream.write_all(text.as_ref()).await.expect("it is read");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("it ends");
    String::from_utf8(answer).expect("it is text")
}

/// The value of a field in a head.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1).take_while(|line| !line.is_empty());
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
