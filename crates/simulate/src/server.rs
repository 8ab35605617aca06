//! The provider over HTTP.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::clock::Clock;
use super::format::path_only;
use super::formats;
use super::paced_body::PacedBody;
use super::provider::Provider;
use super::reply::{ReplyBody, SimulatedReply};
use super::reply_log::ReplyLog;
use super::settings::Settings;
use super::stats::Stats;

/// A [`Provider`] served over HTTP/1.1 and HTTP/2 without TLS.
///
/// A request is charged when its body has arrived, and answered after its latency. `GET /stats`
/// returns the counters as JSON. A dropped server accepts no new connections, and stops after the
/// responses in flight.
#[derive(Debug)]
pub struct SimulatedServer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

#[derive(Debug)]
struct Shared {
    provider: Mutex<Provider>,
    clock: Clock,
    log: Option<ReplyLog>,
}

impl SimulatedServer {
    /// Starts a server on `addr`; port 0 selects a free port. Must be called within a Tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// Returns the I/O error if the address can't be bound.
    pub async fn bind(settings: Settings, addr: SocketAddr) -> io::Result<Self> {
        Self::start(settings, addr, None).await
    }

    /// Starts a server as [`bind`](Self::bind), which also writes a line to `log` for each POST when
    /// it arrives: a JSON object with the time since the first one (`at`), the time until the end of
    /// the reply (`latency`), both in seconds, the HTTP status (`status`), the amount charged to the
    /// token limit (`tokens`), and the cost (`micro_usd`).
    ///
    /// # Errors
    ///
    /// Returns the I/O error if the address can't be bound.
    pub async fn bind_with_log(
        settings: Settings,
        addr: SocketAddr,
        log: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        Self::start(settings, addr, Some(ReplyLog::new(Box::new(log)))).await
    }

    async fn start(
        settings: Settings,
        addr: SocketAddr,
        log: Option<ReplyLog>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        // Frames of a stream are small, and must be sent at their time.
        let listener = listener.tap_io(|tcp| drop(tcp.set_nodelay(true)));
        let provider = Mutex::new(Provider::new(settings));
        let shared = Arc::new(Shared { provider, clock: Clock::start(), log });
        let (stop, stopped) = oneshot::channel();
        let app = app(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            let until = async { drop(stopped.await) };
            axum::serve(listener, app).with_graceful_shutdown(until).await
        });
        Ok(Self { addr, shared, stop, task })
    }

    /// Returns the bound address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        self.shared.provider.lock().stats()
    }

    /// Stops accepting connections, waits for the responses in flight, and returns the final
    /// counters.
    ///
    /// # Errors
    ///
    /// Returns the I/O error if the server or its log had failed.
    pub async fn shutdown(self) -> io::Result<Stats> {
        drop(self.stop);
        self.task.await??;
        if let Some(log) = &self.shared.log {
            log.finish()?;
        }
        Ok(self.shared.provider.lock().stats())
    }
}

fn app(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/stats", get(stats))
        .fallback(receive)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(shared)
}

async fn stats(State(shared): State<Arc<Shared>>) -> Response<Body> {
    let stats = shared.provider.lock().stats();
    let json = serde_json::to_vec(&stats).expect("counters are JSON");
    ([("content-type", "application/json")], json).into_response()
}

async fn receive(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if method != Method::POST {
        let format = formats::for_get(uri.path(), |name| headers.contains_key(name));
        let is_get = method == Method::GET;
        if let Some(models) = is_get.then(|| format.models(path_only(uri.path()))).flatten() {
            return Json(models).into_response();
        }
        let not_found = format.not_found(method.as_str(), uri.path());
        return respond(format.error_reply(uri.path(), &not_found, "")).await;
    }
    // Lock before reading the clock, so that the provider sees increasing times.
    let reply = {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut provider = shared.provider.lock();
        let reply = provider.receive(shared.clock.now_ns(), path, &body);
        if let Some(log) = &shared.log {
            log.write(provider.elapsed(), &reply);
        }
        reply
    };
    respond(reply).await
}

/// Sends a stream over its latency, and other bodies after it.
async fn respond(reply: SimulatedReply) -> Response<Body> {
    let body = match reply.body {
        ReplyBody::Stream(frames) => Body::new(PacedBody::new(frames, reply.latency)),
        ReplyBody::Json(json) => {
            if !reply.latency.is_zero() {
                tokio::time::sleep(reply.latency).await;
            }
            Body::from(json)
        }
    };
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(body).unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// The maximum request body, 32 MiB: more than any model reads.
const MAX_BODY_BYTES: usize = 32 << 20;
