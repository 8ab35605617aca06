//! Upstreams with TLS and test certificates, and a server that trusts their CA.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, Response, Version};
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;

use crate::cli::rig::TestHome;
use crate::serve::process::Served;
use paceline_testing::upstream::listen;

/// A certificate authority.
pub(super) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Ca {
    pub(super) fn new(name: &str) -> Self {
        let mut params = params("127.0.0.1");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Returns a TLS configuration for a host.
    pub(super) fn certify(&self, host: &str) -> ServerConfig {
        self.sign(&params(host))
    }

    pub(super) fn sign(&self, params: &CertificateParams) -> ServerConfig {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        server_config(certificate.der().clone(), &key)
    }

    /// Returns a TLS configuration with the CA certificate itself, as made by `openssl req -x509`.
    pub(super) fn own_certificate(&self) -> ServerConfig {
        let certificate = rustls::pki_types::pem::PemObject::from_pem_slice(self.pem.as_bytes());
        server_config(certificate.expect("a certificate"), self.issuer.key())
    }

    /// Starts a server that trusts only this CA, with these OpenAI upstreams.
    pub(super) fn trusted(&self, upstreams: &[(&str, String)], more: &str) -> Served {
        let home = TestHome::new();
        let file = home.write("ca.pem", &self.pem);
        serve(home, upstreams, more, file.to_str().expect("a path in UTF-8"))
    }
}

/// Starts a server that trusts the CAs in the file `trusted`, and logs to the file `log`.
pub(super) fn serve(
    home: TestHome,
    upstreams: &[(&str, String)],
    more: &str,
    trusted: &str,
) -> Served {
    let mut config =
        format!("{more}\nserve:\n  allow_anonymous: true\n  mode: reject\n  upstreams:\n");
    for (name, url) in upstreams {
        config += &format!("    {name}: {{base_url: '{url}', provider: openai}}\n");
    }
    let log = File::create(home.path("log")).expect("a file");
    Served::start_in(home, &config, |command| {
        command.env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR").stderr(log);
    })
}

pub(super) fn params(host: &str) -> CertificateParams {
    CertificateParams::new([host.to_owned()]).expect("a host")
}

fn server_config(
    certificate: rustls::pki_types::CertificateDer<'static>,
    key: &KeyPair,
) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder =
        builder.with_safe_default_protocol_versions().expect("ring supports the default versions");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    builder
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key matches the certificate")
}

/// A TLS upstream whose requests are answered by the test.
pub(super) struct TlsUpstream {
    pub(super) addr: SocketAddr,
    requests: mpsc::UnboundedReceiver<ReceivedRequest>,
    connections: Arc<AtomicUsize>,
}

/// A complete request to an upstream.
pub(super) struct ReceivedRequest {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) trailers: HeaderMap,
    answer: oneshot::Sender<Response<Body>>,
}

/// The sender of a response body.
pub(super) struct BodySender(mpsc::Sender<Result<Frame<Bytes>, std::io::Error>>);

impl TlsUpstream {
    /// Starts an upstream that selects the first of these protocols that its client supports.
    pub(super) async fn start(config: ServerConfig, protocols: &[&str]) -> Self {
        Self::with_streams(config, protocols, None).await
    }

    /// Starts an upstream that allows at most `max_streams` concurrent HTTP/2 streams.
    pub(super) async fn with_streams(
        mut config: ServerConfig,
        protocols: &[&str],
        max_streams: Option<u32>,
    ) -> Self {
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (send, requests) = mpsc::unbounded_channel();
        let connections = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&connections);
        let addr = listen(move |stream| {
            count.fetch_add(1, Ordering::Relaxed);
            Box::pin(handle_connection(acceptor.clone(), stream, send.clone(), max_streams))
        })
        .await;
        Self { addr, requests, connections }
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    /// Waits for the next request.
    pub(super) async fn request(&mut self) -> ReceivedRequest {
        self.requests.recv().await.expect("the upstream accepts requests")
    }

    /// Returns true if there is no pending request.
    pub(super) fn is_idle(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }

    /// Returns the number of connections.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl ReceivedRequest {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name).map(|value| value.to_str().expect("a text value"))
    }

    pub(super) fn answer(self, response: Response<Body>) {
        assert!(self.answer.send(response).is_ok(), "the client no longer waits");
    }

    /// Sends a response head; the body follows.
    pub(super) fn begin(self, mut response: Response<()>) -> BodySender {
        let (send, mut frames) = mpsc::channel(1);
        let frames = futures_util::stream::poll_fn(move |cx| frames.poll_recv(cx));
        let body = Body::new(StreamBody::new(frames));
        let headers = std::mem::take(response.headers_mut());
        let mut response = response.map(|()| body);
        *response.headers_mut() = headers;
        self.answer(response);
        BodySender(send)
    }

    /// Waits until the client no longer waits for a response.
    pub(super) async fn gone(&mut self) {
        self.answer.closed().await;
    }
}

impl BodySender {
    pub(super) async fn chunk(&self, text: &str) {
        let frame = Frame::data(Bytes::copy_from_slice(text.as_bytes()));
        self.0.send(Ok(frame)).await.expect("the body is read");
    }

    pub(super) async fn trailers(self, trailers: HeaderMap) {
        self.0.send(Ok(Frame::trailers(trailers))).await.expect("the body is read");
    }

    /// Waits until the receiver of the body is gone.
    pub(super) async fn gone(&self) {
        self.0.closed().await;
    }
}

async fn handle_connection(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    send: mpsc::UnboundedSender<ReceivedRequest>,
    max_streams: Option<u32>,
) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let stream = TokioIo::new(stream);
    let service = service_fn(move |request| answer_by_test(request, send.clone()));
    let _ = if is_http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.max_concurrent_streams(max_streams).serve_connection(stream, service).await
    } else {
        http1::Builder::new().serve_connection(stream, service).await
    };
}

async fn answer_by_test(
    request: Request<Incoming>,
    send: mpsc::UnboundedSender<ReceivedRequest>,
) -> hyper::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().cloned().unwrap_or_default();
    let (answer, answered) = oneshot::channel();
    let _ = send.send(ReceivedRequest { parts, body: body.to_bytes(), trailers, answer });
    // A request dropped by the test is never answered.
    match answered.await {
        Ok(response) => Ok(response),
        Err(_) => std::future::pending().await,
    }
}

/// Returns a response head.
pub(super) fn head(fields: &[(&'static str, &'static str)]) -> Response<()> {
    let mut response = Response::builder().version(Version::HTTP_11);
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(()).expect("a head")
}
