use tracing::field::Empty;
use tracing::{Level, Span};

use super::call::Call;
use super::classify::Classified;
use super::scope_key::ScopeKey;
use crate::Timestamp;
use crate::limiter::{AcquireError, Code, Event, Exchange, Limiter, Permit};
use crate::provider::{ApiError, Profile, Scanned};
use crate::quota::{Cost, Usage};
use paceline_limiter::seam;

/// The `tracing` span of a request, and the [`Exchange`] that is sent to event subscribers at its end.
/// It isn't created if the span is disabled and the limiter has no subscribers.
///
/// It contains neither bodies nor headers. Field names follow OpenTelemetry's semantic conventions for
/// generative AI (version 1.41.0, in development); other fields are named `paceline.*`.
pub(super) struct Record {
    span: Span,
    limiter: Limiter,
    started_at: Timestamp,
    has_response: bool,
    exchange: Exchange,
}

impl Record {
    #[inline]
    pub(super) fn start(limiter: &Limiter, classified: &Classified) -> Option<Box<Self>> {
        let is_enabled =
            tracing::enabled!(target: TARGET, Level::INFO) || seam::is_watched(limiter);
        let call = classified.call.as_ref().filter(|_| is_enabled)?;
        Some(Self::new(limiter, classified, call))
    }

    #[cold]
    fn new(limiter: &Limiter, classified: &Classified, call: &Call) -> Box<Self> {
        let key = classified.keys.first().map_or("", ScopeKey::as_str);
        let (provider, operation) = (provider(call.profile), call.operation.as_str());
        let model = call.model.as_deref().unwrap_or(key);
        let span = span(provider, operation, model, key);
        let (limiter, started_at) = (limiter.clone(), limiter.now());
        Box::new(Self {
            span,
            limiter,
            started_at,
            has_response: false,
            exchange: Exchange::new(key, model, provider, operation),
        })
    }

    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records the admission.
    pub(super) fn on_granted(&self, permit: &Permit) {
        if self.span.is_disabled() {
            return;
        }
        let waited = permit.granted_at() - self.started_at;
        self.span.record("paceline.waited_ms", waited.as_secs_f64() * 1e3);
        self.span.record("paceline.reserved_tokens", permit.cost().all_tokens());
    }

    /// Records the limiter's refusal.
    pub(super) fn on_refused(&mut self, error: &AcquireError) {
        self.on_error(match error {
            AcquireError::Refused(refused) => match refused.code {
                // A tenant or an account without a quota is no model.
                Code::UnknownModel if refused.key != self.exchange.model => "unknown_key",
                code => code.as_str(),
            },
            AcquireError::DeadlineExceeded { .. } => "deadline_exceeded",
            AcquireError::QueueFull { .. } => "queue_full",
            AcquireError::Removed { .. } => "quota_removed",
            AcquireError::Closed => "closed",
            _ => OTHER,
        });
    }

    /// Records an error, by its OpenTelemetry error type.
    pub(super) fn on_error(&mut self, error: &str) {
        self.span.record("error.type", error);
        self.span.record("otel.status_code", "ERROR");
        self.exchange.error = Some(error.into());
    }

    /// Records that a response arrived, with any status.
    pub(super) fn on_response(&mut self) {
        self.has_response = true;
    }

    /// Records the status of the response.
    pub(super) fn on_head(&mut self, status: http::StatusCode) {
        self.exchange.status = Some(status.as_u16());
        self.span.record("http.response.status_code", status.as_u16());
        if status.as_u16() >= 400 {
            self.on_error(status.as_str());
        }
    }

    /// Records the usage and the error that were read from the response body.
    pub(super) fn on_body(&mut self, scanned: &Scanned) {
        self.exchange.usage = scanned.usage;
        if let Some(Usage { input, output, cache_read, cache_write, .. }) = scanned.usage {
            self.span.record("gen_ai.usage.input_tokens", input);
            self.span.record("gen_ai.usage.output_tokens", output);
            self.span.record("gen_ai.usage.cache_read.input_tokens", cache_read);
            self.span.record("gen_ai.usage.cache_creation.input_tokens", cache_write);
        }
        if let Some(error) = &scanned.error {
            self.on_error(ApiError::code(error).or(error.kind()).unwrap_or(OTHER));
        }
    }

    /// Records the charged cost.
    pub(super) fn on_charged(&self, charge: &Cost) {
        self.span.record("paceline.charged_tokens", charge.all_tokens());
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.has_response && self.exchange.error.is_none() {
            self.on_error("cancelled");
        }
        if seam::is_watched(&self.limiter) {
            self.exchange.duration = self.limiter.now() - self.started_at;
            seam::send_event(&self.limiter, || Event::Exchanged(Box::new(self.exchange.clone())));
        }
    }
}

fn span(provider: &str, operation: &str, model: &str, key: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "gen_ai.client.operation",
        otel.name = %format_args!("{operation} {model}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = operation,
        gen_ai.provider.name = provider,
        gen_ai.request.model = model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        http.response.status_code = Empty,
        "error.type" = Empty,
        paceline.key = key,
        paceline.waited_ms = Empty,
        paceline.reserved_tokens = Empty,
        paceline.charged_tokens = Empty,
    )
}

/// Returns the value of `gen_ai.provider.name`: the name in the conventions, or else the profile's.
fn provider(profile: Profile) -> &'static str {
    let name = profile.name();
    NAMES.iter().find(|(profile, _)| *profile == name).map_or(name, |(_, convention)| convention)
}

const TARGET: &str = "paceline::request";

/// The `error.type` of the conventions for an error without a name.
pub(super) const OTHER: &str = "_OTHER";

/// The profiles whose name differs from that in the conventions.
const NAMES: &[(&str, &str)] = &[
    ("azure", "azure.ai.openai"),
    ("bedrock", "aws.bedrock"),
    ("gemini", "gcp.gemini"),
    ("mistral", "mistral_ai"),
    ("vertex", "gcp.vertex_ai"),
    ("vertex-anthropic", "gcp.vertex_ai"),
];
