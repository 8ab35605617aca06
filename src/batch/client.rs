//! The HTTP side: a Tower service from a line's request to the provider's response.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use tokio::sync::Semaphore;
use tower_service::Service;

use super::target::Base;

/// An API key. It is sent, and shown nowhere.
#[derive(Clone)]
pub struct ApiKey(HeaderValue);

impl ApiKey {
    /// A key that is sent as `Authorization: Bearer`.
    ///
    /// # Errors
    /// If it has characters that no header may have.
    pub fn new(key: &str) -> Result<Self, InvalidKey> {
        let value = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
        let mut value = value.map_err(|_| InvalidKey)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// A key that can't be sent in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidKey;

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the API key has characters that can't be sent; is it a key?")
    }
}

impl std::error::Error for InvalidKey {}

/// Sends requests to paths under a base URL, a bounded number at a time.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Arc<Base>,
    key: Option<ApiKey>,
    slots: Arc<Semaphore>,
}

impl Client {
    pub(super) fn new(
        base: Base,
        key: Option<ApiKey>,
        max_in_flight: usize,
    ) -> Result<Self, reqwest::Error> {
        // Another provider may be installed already, and will do as well.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .tcp_nodelay(true)
            .build()?;
        let slots = Arc::new(Semaphore::new(max_in_flight.min(Semaphore::MAX_PERMITS)));
        Ok(Self { http, base: Arc::new(base), key, slots })
    }

    fn request(&self, path: &str, body: Bytes) -> reqwest::RequestBuilder {
        let json = HeaderValue::from_static("application/json");
        let request = self.http.post(self.base.join(path)).header(CONTENT_TYPE, json).body(body);
        match &self.key {
            Some(ApiKey(value)) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        }
    }
}

impl Service<http::Request<Bytes>> for Client {
    type Response = http::Response<reqwest::Body>;
    type Error = reqwest::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), reqwest::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Bytes>) -> Self::Future {
        let slots = Arc::clone(&self.slots);
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let request = self.request(&path, request.into_body());
        Box::pin(async move {
            let _slot = slots.acquire().await;
            let response = http::Response::from(request.send().await?);
            Ok(response)
        })
    }
}

const CONNECT: Duration = Duration::from_secs(10);
/// As long as the official SDKs wait.
const ANSWER: Duration = Duration::from_secs(600);
