//! A proxy, upstreams that a test answers by hand, and clients that write what they like.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tollgate::Limiter;
use tollgate::config::Config;
use tollgate::serve::{Server, Tokens};

/// A server whose one upstream is `up`, of OpenAI's kind unless the configuration says more.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) server: Server,
    pub(super) limiter: Limiter,
}

impl Proxy {
    /// In front of this address; `more` are further lines of the configuration.
    pub(super) async fn to(upstream: SocketAddr, more: &str) -> Self {
        Self::with(&[("up", upstream, "openai")], "", more).await
    }

    /// The same, with more in the section `serve`.
    pub(super) async fn serving(upstream: SocketAddr, serve: &str, more: &str) -> Self {
        Self::with(&[("up", upstream, "openai")], serve, more).await
    }

    /// In front of upstreams with a name, an address and a provider.
    pub(super) async fn with(
        upstreams: &[(&str, SocketAddr, &str)],
        serve: &str,
        more: &str,
    ) -> Self {
        // Requests of these tests name whatever host they like.
        let section = "serve:\n  listen: '127.0.0.1:0'\n  allow_anonymous: true\n";
        let mut text = format!("{more}\n{section}");
        for line in serve.lines() {
            text += &format!("  {line}\n");
        }
        text += "  upstreams:\n";
        for (name, addr, provider) in upstreams {
            text += &format!("    {name}: {{base_url: 'http://{addr}', provider: {provider}}}\n");
        }
        let config = Config::parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let limiter = config.server_limiter().expect("it is made");
        Self::start(config, limiter).await
    }

    async fn start(config: Config, limiter: Limiter) -> Self {
        Self::guarded(config, limiter, Tokens::default()).await
    }

    /// One that asks its clients for a token.
    pub(super) async fn guarded(config: Config, limiter: Limiter, tokens: Tokens) -> Self {
        let server = Server::bind(config, limiter.clone(), tokens).await;
        Self { server: server.expect("a free port"), limiter }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr())
    }

    /// Sends a chat to this model through `up`.
    pub(super) fn chat(&self, model: &str) -> reqwest::RequestBuilder {
        let json = [("content-type", "application/json")];
        let post = http().post(self.url("/up/v1/chat/completions")).body(chat(model));
        json.into_iter().fold(post, |post, (name, value)| post.header(name, value))
    }

    /// How much of a key's first limit is taken, held or not.
    pub(super) fn used(&self, key: &str) -> u64 {
        self.limiter.stats(key).limits.first().map_or(0, |limit| limit.used)
    }
}

/// The body of a short chat.
pub(super) fn chat(model: &str) -> String {
    format!(
        r#"{{"model": "{model}", "max_tokens": 5, "messages": [{{"role": "user", "content": "Hi"}}]}}"#
    )
}

/// A client that goes straight there, follows nothing and waits as long as it takes.
pub(super) fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().no_proxy().no_gzip().tcp_nodelay(true);
    builder.redirect(reqwest::redirect::Policy::none()).build().expect("a client")
}

pub(super) async fn json(response: reqwest::Response) -> Value {
    let text = response.bytes().await.expect("a body");
    serde_json::from_slice(&text).expect("it is JSON")
}

/// Listens, and hands each request that comes to the test, which answers it.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) addr: SocketAddr,
    requests: mpsc::UnboundedReceiver<Exchange>,
}

/// A request that an upstream has read, and the connection that waits for its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Its first line and fields, as they came.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    pub(super) stream: TcpStream,
}

impl Upstream {
    pub(super) async fn start() -> Self {
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
    pub(super) async fn request(&mut self) -> Exchange {
        self.requests.recv().await.expect("it listens")
    }

    /// Whether no request has come that was not asked for.
    pub(super) fn is_idle(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl Exchange {
    pub(super) async fn read(mut stream: TcpStream) -> Option<Self> {
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
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// The first line.
    pub(super) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub(super) async fn write(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.expect("it is read");
    }

    /// Answers with these fields and this body, and is done.
    pub(super) async fn answer(mut self, status: &str, fields: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{fields}content-length: {length}\r\n");
        self.write(format!("{head}connection: close\r\n\r\n{body}")).await;
    }

    /// Begins a body that ends when it says so.
    pub(super) async fn begin_chunks(&mut self) {
        let fields = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
        self.write(format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).await;
    }

    pub(super) async fn chunk(&mut self, text: &str) {
        self.write(format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    /// Waits until the other side has closed the connection.
    pub(super) async fn closed(&mut self) {
        let mut rest = [0; 1_024];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }
}

/// Does this with each connection to a port of its own.
pub(super) async fn listen(
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
pub(super) async fn raw(addr: SocketAddr, text: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(addr).await.expect("it listens");
    stream.write_all(text.as_ref()).await.expect("it is read");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("it ends");
    String::from_utf8(answer).expect("it is text")
}

/// The value of a field in a head.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1).take_while(|line| !line.is_empty());
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

/// Chunks of random bytes, from a seed.
pub(super) fn chunks(seed: u64) -> Vec<Bytes> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let count = next() % 12;
    let mut chunk = |_| {
        let most = [1, 16, 1_024, 40_000][usize::try_from(next() % 4).unwrap()];
        (0..=next() % most).map(|_| next().to_le_bytes()[0]).collect::<Vec<u8>>().into()
    };
    (0..count).map(&mut chunk).collect()
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
