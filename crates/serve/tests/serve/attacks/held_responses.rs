//! Responses that aren't read: they count as open streams. Long ones have a budget of memory, which unit tests cover, since
//! they take long to make.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use paceline_serve::{Server, Tokens};
use tokio::net::TcpStream;

/// A server behind a reverse proxy that states its clients.
async fn start(bounds: &str) -> Server {
    let text = format!(
        "serve: {{listen: '127.0.0.1:0', trusted_proxies: ['127.0.0.1'], bounds: {{{bounds}}}}}"
    );
    let config = paceline_serve::parse(&text).unwrap();
    let limiter = config.builder().build().unwrap();
    let mut tokens = Tokens::default();
    (tokens.client, tokens.admin) = (Some("client".to_owned()), Some("admin".to_owned()));
    Server::bind(config, limiter, tokens).await.unwrap()
}

/// An HTTP/2 connection whose streams have windows of this size.
struct Connection {
    send: SendRequest<Empty<Bytes>>,
    authority: String,
}

impl Connection {
    async fn open(server: &Server, window: u32) -> Self {
        let stream = TcpStream::connect(server.addr()).await.unwrap();
        let mut builder = Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        let (send, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { send, authority: server.addr().to_string() }
    }

    async fn get(&mut self, path: &str, client: &str) -> Response<Incoming> {
        let request = Request::get(format!("http://{}{path}", self.authority))
            .header("authorization", "Bearer admin")
            .header("x-forwarded-for", client);
        let request = request.header("accept-encoding", "identity").body(Empty::new()).unwrap();
        self.send.send_request(request).await.unwrap()
    }
}

#[tokio::test]
async fn unread_responses_count_as_open_streams() {
    // A window of one byte lets the server hand the response to HTTP/2, which keeps it.
    for window in [0, 1] {
        let server = start("streams: 20").await;
        let mut connections = VecDeque::new();
        let mut unread = Vec::new();
        for n in 0..10 {
            let mut connection = Connection::open(&server, window).await;
            let response = connection.get("/openapi.json", "10.0.0.1").await;
            assert_eq!(response.status(), 200, "{n} with a window of {window}");
            unread.push(response);
            connections.push_back(connection);
        }
        for connection in &mut connections {
            let refused = connection.get("/", "10.0.0.1").await;
            assert_eq!(refused.status(), 503);
            assert_eq!(refused.headers()["retry-after"], "1");
            // A refusal has no body, which would not be read either.
            assert!(refused.collect().await.unwrap().to_bytes().is_empty());
        }
        let mut other = Connection::open(&server, 1 << 20).await;
        let response = other.get("/", "10.0.0.2").await;
        assert_eq!(response.status(), 200);
        assert!(response.collect().await.unwrap().to_bytes().len() > 1_000);
        // Cancelled streams give their part back.
        drop(unread.pop());
        while other.get("/healthz", "10.0.0.1").await.status() == 503 {}
    }
}
