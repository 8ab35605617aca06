//! A proxy that records traffic.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::net::TcpListener;

/// Forwards everything to one server, and ends with the runtime.
#[derive(Debug)]
pub(crate) struct Recorder {
    addr: SocketAddr,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

/// A recorded response, as far as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Shared {
    to: SocketAddr,
    client: reqwest::Client,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl Recorder {
    pub(crate) async fn start(to: SocketAddr) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(any).await.expect("a free port");
        let addr = listener.local_addr().expect("a local address");
        let client = paceline_testing::http::client();
        let exchanges = Arc::default();
        let shared = Shared { to, client, exchanges: Arc::clone(&exchanges) };
        let app = Router::new().fallback(forward).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { addr, exchanges }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Returns the recorded exchanges in order.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().clone()
    }
}

/// Forwards and records the frames of a body.
async fn forward(State(shared): State<Shared>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a request");
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let request = shared.client.request(head.method, format!("http://{}{path}", shared.to));
    let mut headers = head.headers;
    [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, ACCEPT_ENCODING]
        .iter()
        .for_each(|name| drop(headers.remove(name)));
    let received = request.headers(headers).body(body).send().await.expect("a response");

    let content_type = received.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let (status, content_type) = (received.status().as_u16(), content_type.map(str::to_owned));
    let number = {
        let mut exchanges = shared.exchanges.lock();
        exchanges.push(Exchange { status, content_type, body: Vec::new() });
        exchanges.len() - 1
    };
    let mut response = Response::builder().status(status);
    for (name, value) in received.headers() {
        if ![CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
            response = response.header(name, value);
        }
    }
    let exchanges = shared.exchanges;
    let frames = received.bytes_stream().inspect(move |frame| {
        if let Ok(frame) = frame {
            exchanges.lock()[number].body.extend_from_slice(frame);
        }
    });
    response.body(Body::from_stream(frames)).expect("a response")
}
