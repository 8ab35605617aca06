use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::{HeaderValue, Method};

use super::config::Log;
use super::route::Route;

/// The status classes whose responses are logged. They can be changed while the server runs.
#[derive(Debug)]
pub(super) struct AccessLog {
    log2xx: AtomicBool,
    log4xx: AtomicBool,
    log5xx: AtomicBool,
}

impl AccessLog {
    pub(super) fn new(log: &Log) -> Self {
        Self { log2xx: log.log2xx.into(), log4xx: log.log4xx.into(), log5xx: log.log5xx.into() }
    }

    pub(super) fn set(&self, log: &Log) {
        self.log2xx.store(log.log2xx, Ordering::Relaxed);
        self.log4xx.store(log.log4xx, Ordering::Relaxed);
        self.log5xx.store(log.log5xx, Ordering::Relaxed);
    }

    /// Returns true if responses with this status are logged.
    pub(super) fn includes(&self, status: u16) -> bool {
        match status {
            ..400 => &self.log2xx,
            400..500 => &self.log4xx,
            500.. => &self.log5xx,
        }
        .load(Ordering::Relaxed)
    }
}

/// A line of the access log. Of the client's data it contains only ids, neither keys nor queries.
#[derive(Debug)]
pub(super) struct AccessLogEntry<'a> {
    pub(super) status: u16,
    pub(super) route: Route,
    pub(super) method: &'a Method,
    pub(super) request_id: &'a HeaderValue,
    pub(super) correlation_id: Option<&'a HeaderValue>,
    pub(super) took: Duration,
}

impl AccessLogEntry<'_> {
    pub(super) fn log(&self) {
        let (status, route) = (self.status, self.route.path());
        // A client can send any method, even one that contains a secret.
        let known = STANDARD_METHODS.contains(self.method);
        let method = if known { self.method.as_str() } else { "other" };
        let request_id = text(Some(self.request_id));
        let correlation_id = text(self.correlation_id);
        let latency_ms = self.took.as_secs_f64() * 1e3;
        // The level of an event must be a constant.
        macro_rules! event {
            ($level:ident) => {
                tracing::$level!(
                    method,
                    route,
                    status,
                    latency_ms,
                    request_id,
                    correlation_id,
                    "request finished"
                )
            };
        }
        match status {
            ..500 => event!(info),
            500.. => event!(error),
        }
    }
}

fn text(value: Option<&HeaderValue>) -> &str {
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

const STANDARD_METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];
