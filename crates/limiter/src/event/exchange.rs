use std::time::Duration;

use crate::quota::{Key, Usage};

/// A request to a provider and its response, from the call to the end of the response body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// The key that the request was charged to.
    pub key: Key,
    /// The model of the request; the key if the request names none.
    pub model: Key,
    /// The provider, as in OpenTelemetry's conventions (`gen_ai.provider.name`).
    pub provider: &'static str,
    /// The operation, as in OpenTelemetry's conventions (`gen_ai.operation.name`).
    pub operation: &'static str,
    /// The HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// The kind of the error in one word, if there was one.
    pub error: Option<String>,
    /// The usage that the response reported.
    pub usage: Option<Usage>,
    /// The time from the call to the end, including the wait in the queue.
    pub duration: Duration,
}

impl Exchange {
    /// Creates an exchange with only its key, model, provider and operation.
    pub fn new(
        key: impl Into<Key>,
        model: impl Into<Key>,
        provider: &'static str,
        operation: &'static str,
    ) -> Self {
        let (status, error, usage, duration) = (None, None, None, Duration::ZERO);
        Self {
            key: key.into(),
            model: model.into(),
            provider,
            operation,
            status,
            error,
            usage,
            duration,
        }
    }
}
