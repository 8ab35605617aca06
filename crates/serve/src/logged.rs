use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::{HeaderValue, Method};

use super::config::Log;
use super::route::Route;

/// Which answers are logged; it may change while the server runs.
#[derive(Debug)]
pub(super) struct Logs {
    log2xx: AtomicBool,
    log4xx: AtomicBool,
    log5xx: AtomicBool,
}

impl Logs {
    pub(super) fn new(log: &Log) -> Self {
        Self { log2xx: log.log2xx.into(), log4xx: log.log4xx.into(), log5xx: log.log5xx.into() }
    }

    pub(super) fn set(&self, log: &Log) {
        self.log2xx.store(log.log2xx, Ordering::Relaxed);
        self.log4xx.store(log.log4xx, Ordering::Relaxed);
        self.log5xx.store(log.log5xx, Ordering::Relaxed);
    }

    /// Whether an answer of this status is logged.
    pub(super) fn tells(&self, status: u16) -> bool {
        match status {
            ..400 => &self.log2xx,
            400..500 => &self.log4xx,
            500.. => &self.log5xx,
        }
        .load(Ordering::Relaxed)
    }
}

/// What is logged of an answer: nothing that a client chose but its ids, neither key nor query.
#[derive(Debug)]
pub(super) struct Answered<'a> {
    pub(super) status: u16,
    pub(super) route: Route,
    pub(super) method: &'a Method,
    pub(super) request_id: &'a HeaderValue,
    pub(super) correlation_id: Option<&'a HeaderValue>,
    pub(super) took: Duration,
}

impl Answered<'_> {
    pub(super) fn tell(&self) {
        let (status, route) = (self.status, self.route.template());
        // Any extension is a method; a client may put something secret there.
        let known = STANDARD.contains(self.method);
        let method = if known { self.method.as_str() } else { "other" };
        let request_id = text(Some(self.request_id));
        let correlation_id = text(self.correlation_id);
        let latency_ms = self.took.as_secs_f64() * 1e3;
        // Of which level an event is, no variable can say.
        macro_rules! tell {
            ($level:ident) => {
                tracing::$level!(
                    method,
                    route,
                    status,
                    latency_ms,
                    request_id,
                    correlation_id,
                    "answered"
                )
            };
        }
        match status {
            ..500 => tell!(info),
            500.. => tell!(error),
        }
    }
}

fn text(value: Option<&HeaderValue>) -> &str {
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

const STANDARD: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];
