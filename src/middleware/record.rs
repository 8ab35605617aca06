use tracing::field::Empty;
use tracing::{Level, Span};

use super::classify::Classified;
use super::scope_key::ScopeKey;
use crate::limiter::{AcquireError, Event, Exchange, Limiter, Permit};
use crate::provider::{ApiError, Operation, Profile, Scanned};
use crate::quota::{Cost, Key, Usage};
use crate::timestamp::Timestamp;

/// A request to a provider, as it was read: what a record says of it beside its key.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) profile: Profile,
    pub(super) operation: Operation,
    /// Where the key isn't the model that was asked for.
    pub(super) model: Option<Key>,
}

/// What is told of a request while it lasts: a span of `tracing`, and at its end an [`Exchange`]
/// for those who hear of events. There is none where nobody would be told.
///
/// It knows neither contents nor headers. Names are those of OpenTelemetry's conventions for
/// generative AI where they have one (version 1.41.0, in development), else `tollgate.*`.
pub(super) struct Record {
    span: Span,
    limiter: Limiter,
    begun_at: Timestamp,
    answered: bool,
    exchange: Exchange,
}

impl Record {
    #[inline]
    pub(super) fn begin(limiter: &Limiter, classified: &Classified) -> Option<Box<Self>> {
        let is_told = tracing::enabled!(target: TARGET, Level::INFO) || limiter.is_watched();
        let call = classified.call.as_ref().filter(|_| is_told)?;
        Some(Self::new(limiter, classified, call))
    }

    #[cold]
    fn new(limiter: &Limiter, classified: &Classified, call: &Call) -> Box<Self> {
        let key = classified.keys.first().map_or("", ScopeKey::as_str);
        let names = (provider(call.profile), call.operation.as_str());
        let model = call.model.as_deref().unwrap_or(key);
        let span = span(names, model, key);
        let (limiter, begun_at) = (limiter.clone(), limiter.now());
        Box::new(Self {
            span,
            limiter,
            begun_at,
            answered: false,
            exchange: Exchange::new(key, model, names),
        })
    }

    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// It was let in.
    pub(super) fn granted(&self, permit: &Permit) {
        if self.span.is_disabled() {
            return;
        }
        let waited = permit.granted_at() - self.begun_at;
        self.span.record("tollgate.waited_ms", waited.as_secs_f64() * 1e3);
        self.span.record("tollgate.reserved_tokens", permit.cost().all_tokens());
    }

    /// It wasn't.
    pub(super) fn refused(&mut self, error: &AcquireError) {
        self.failed(match error {
            AcquireError::Refused(refused) => refused.code.as_str(),
            AcquireError::DeadlineExceeded { .. } => "deadline_exceeded",
            AcquireError::QueueFull { .. } => "queue_full",
            AcquireError::Removed { .. } => "quota_removed",
            AcquireError::Closed => "closed",
        });
    }

    /// Something went wrong.
    pub(super) fn failed(&mut self, error: &str) {
        self.span.record("error.type", error);
        self.span.record("otel.status_code", "ERROR");
        self.exchange.error = Some(error.into());
    }

    /// It was answered, in whatever way.
    pub(super) fn answered(&mut self) {
        self.answered = true;
    }

    /// The head of its answer is here.
    pub(super) fn head(&mut self, status: http::StatusCode) {
        self.exchange.status = Some(status);
        self.span.record("http.response.status_code", status.as_u16());
        if status.as_u16() >= 400 {
            self.failed(status.as_str());
        }
    }

    /// The body of its answer has said this.
    pub(super) fn said(&mut self, said: &Scanned) {
        self.exchange.usage = said.usage;
        if let Some(Usage { input, output, cache_read, cache_write }) = said.usage {
            self.span.record("gen_ai.usage.input_tokens", input);
            self.span.record("gen_ai.usage.output_tokens", output);
            self.span.record("gen_ai.usage.cache_read.input_tokens", cache_read);
            self.span.record("gen_ai.usage.cache_creation.input_tokens", cache_write);
        }
        if let Some(error) = &said.error {
            self.failed(ApiError::code(error).or(error.kind()).unwrap_or(OTHER));
        }
    }

    /// It was charged this in the end.
    pub(super) fn charged(&self, charge: &Cost) {
        self.span.record("tollgate.charged_tokens", charge.all_tokens());
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.answered && self.exchange.error.is_none() {
            self.failed("cancelled");
        }
        if self.limiter.is_watched() {
            self.exchange.duration = self.limiter.now() - self.begun_at;
            self.limiter.tell(|| Event::Exchanged(Box::new(self.exchange.clone())));
        }
    }
}

fn span((provider, operation): (&str, &str), model: &str, key: &str) -> Span {
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
        tollgate.key = key,
        tollgate.waited_ms = Empty,
        tollgate.reserved_tokens = Empty,
        tollgate.charged_tokens = Empty,
    )
}

/// The provider's name in the conventions, where they have one (`gen_ai.provider.name`).
fn provider(profile: Profile) -> &'static str {
    let name = profile.name();
    NAMES.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, theirs)| theirs)
}

const TARGET: &str = "tollgate::request";

/// What the conventions say for an error that has no name.
pub(super) const OTHER: &str = "_OTHER";

/// Profiles that have another name in the conventions.
const NAMES: &[(&str, &str)] = &[
    ("azure", "azure.ai.openai"),
    ("bedrock", "aws.bedrock"),
    ("gemini", "gcp.gemini"),
    ("mistral", "mistral_ai"),
    ("vertex", "gcp.vertex_ai"),
    ("vertex-anthropic", "gcp.vertex_ai"),
];
