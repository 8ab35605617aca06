//! A scripted server that records its requests.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use http_body::Frame;
use paceline::Timestamp;
use paceline::limiter::Limiter;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Its number, from 0.
    pub(crate) number: usize,
    pub(crate) path: String,
    /// The `user` of the body: its id.
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) authorization: String,
    pub(crate) headers: HeaderMap,
    /// The time of its arrival.
    pub(crate) arrived: Timestamp,
    /// The number of responses sent by then, and the time of the last one.
    pub(crate) answers_before: usize,
    pub(crate) answered_before: Timestamp,
}

/// A scripted response.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    after: Duration,
    held: bool,
}

impl Reply {
    /// Returns a chat completion with a usage of 7 input and 5 output tokens.
    pub(crate) fn ok() -> Self {
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12});
        let body = json!({"object": "chat.completion", "choices": [], "usage": usage});
        Self { status: 200, body: body.to_string(), ..Self::default() }
    }

    /// Returns an error in OpenAI's format.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Self {
        let error = json!({"error": {"message": message, "type": "x", "code": code}});
        Self { status, body: error.to_string(), ..Self::default() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn body(self, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Delays the response.
    pub(crate) fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }

    /// Sends the body when the test [releases](Scripted::release) it.
    pub(crate) fn held(self) -> Self {
        Self { held: true, ..self }
    }
}

type Script = dyn Fn(&Call) -> Reply + Send + Sync;

pub(crate) struct Scripted {
    base: String,
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<Script>,
    record: Mutex<Record>,
    gate: Semaphore,
    clock: Limiter,
}

#[derive(Default)]
struct Record {
    calls: Vec<Call>,
    answers: usize,
    answered: Timestamp,
}

impl Scripted {
    pub(crate) async fn start(script: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script).await
    }

    pub(crate) async fn start_at(
        address: &str,
        script: impl Fn(&Call) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::new(Shared {
            script: Box::new(script),
            record: Mutex::default(),
            gate: Semaphore::new(0),
            clock: Limiter::builder().build().expect("a clock"),
        });
        let app = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { base, shared }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.shared.record.lock().calls.clone()
    }

    pub(crate) fn received(&self) -> usize {
        self.shared.record.lock().calls.len()
    }

    /// Releases all held responses, now and later.
    pub(crate) fn release(&self) {
        self.shared.gate.close();
    }
}

async fn receive(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let body: Value = serde_json::from_slice(&body).expect("a JSON body");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    let call = {
        let mut record = shared.record.lock();
        let call = Call {
            number: record.calls.len(),
            path: uri.to_string(),
            id: text(&body["user"]),
            model: text(&body["model"]),
            authorization: authorization.unwrap_or_default().to_owned(),
            headers: headers.clone(),
            arrived: shared.clock.now(),
            answers_before: record.answers,
            answered_before: record.answered,
        };
        record.calls.push(call.clone());
        call
    };
    let reply = (shared.script)(&call);
    if !reply.after.is_zero() {
        tokio::time::sleep(reply.after).await;
    }
    {
        let mut record = shared.record.lock();
        (record.answers, record.answered) = (record.answers + 1, shared.clock.now());
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let body = match reply.held {
        true => Body::new(Held::new(shared, reply.body)),
        false => reply.body.into(),
    };
    response.body(body).expect("a response")
}

/// A body that is sent when it is released.
struct Held {
    released: Pin<Box<dyn Future<Output = ()> + Send>>,
    body: Option<String>,
}

impl Held {
    fn new(shared: Arc<Shared>, body: String) -> Self {
        // An error means that all responses were released.
        let released = Box::pin(async move { drop(shared.gate.acquire().await) });
        Self { released, body: Some(body) }
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.body.is_some() {
            ready!(self.released.as_mut().poll(cx));
        }
        Poll::Ready(self.body.take().map(|body| Ok(Frame::data(body.into()))))
    }
}
