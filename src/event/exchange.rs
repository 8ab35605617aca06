use std::time::Duration;

use http::StatusCode;

use crate::quota::{Key, Usage};

/// A request to a provider and its answer, from the call to the end of the answer's body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// The key that it was charged to.
    pub key: Key,
    /// The model that was asked for; the key, where the request names none.
    pub model: Key,
    /// The provider, in the words of OpenTelemetry's conventions (`gen_ai.provider.name`).
    pub provider: &'static str,
    /// The operation, in the same words (`gen_ai.operation.name`).
    pub operation: &'static str,
    /// The status of the answer, if there was one.
    pub status: Option<StatusCode>,
    /// The kind of the error, in one word, if there was one.
    pub error: Option<String>,
    /// The usage that the answer reported.
    pub usage: Option<Usage>,
    /// From the call to the end, the wait for its turn included.
    pub duration: Duration,
}

impl Exchange {
    /// An exchange that took no time and of which nothing is known.
    pub fn new(
        key: impl Into<Key>,
        model: impl Into<Key>,
        (provider, operation): (&'static str, &'static str),
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
