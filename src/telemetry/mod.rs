//! Figures of a limiter through the facade [`metrics`](https://docs.rs/metrics), whoever collects them.
//!
//! [`Metrics`] hears every event of a limiter ([`Limiter::listen`](crate::Limiter::listen)) and so
//! counts exactly, however slow the exporter is. What is a state and no event is read off when
//! somebody asks: [`Meter::sample`].
//!
//! It exports nothing itself: an exporter does that is the process's recorder, such as
//! `metrics-exporter-prometheus` (`examples/prometheus.rs`). Nor does it make spans: they come of the
//! layer, and lines of a log of the limiter, with `tracing` alone (see below).
//!
//! ```
//! use tollgate::telemetry::Metrics;
//! use tollgate::{Cost, Limiter, Quota};
//! let exporter = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
//! let page = exporter.handle();
//!
//! let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(1)).build()?;
//! // `Metrics::new()` alone tells the process's recorder.
//! let meter = Metrics::new().with_recorder(exporter).install(&limiter);
//! let _permit = limiter.try_acquire("gpt-4o", &Cost::new())?;
//!
//! meter.sample();
//! let page = page.render();
//! assert!(page.contains(r#"tollgate_granted_total{key="gpt-4o"} 1"#));
//! assert!(page.contains(r#"tollgate_used{key="gpt-4o",dimension="requests",window_seconds="60"} 1"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | name | kind | unit | labels | meaning |
//! |---|---|---|---|---|
//! | `tollgate_granted_total` | counter |  | `key` | Reservations that were granted |
//! | `tollgate_denied_total` | counter |  | `key`, `dimension` | Reservations that were refused, by what fell short |
//! | `tollgate_wait_seconds` | histogram | seconds | `key` | How long those waited that had to, until they were granted |
//! | `tollgate_settled_total` | counter |  | `key` | Reservations that ended with a charge |
//! | `tollgate_released_total` | counter |  | `key` | Reservations that were given back: the request never left |
//! | `tollgate_reserved_tokens_total` | counter |  | `key`, `dimension` | Tokens that had been reserved by what has ended with a charge |
//! | `tollgate_charged_tokens_total` | counter |  | `key`, `dimension` | Tokens that it was charged |
//! | `tollgate_estimate_ratio` | histogram |  | `key` | Reserved tokens over charged tokens of each request that was charged any: 1 is exact |
//! | `tollgate_cooling_down_total` | counter |  | `key` | Cool-downs after refusals by the provider (429, 503, 529), or as others tell of them |
//! | `tollgate_reduced_total` | counter |  | `key` | Reductions of a capacity, after refusals or because somebody said so |
//! | `tollgate_recovered_total` | counter |  | `key` | Returns to the whole quota |
//! | `tollgate_capacity` | gauge |  | `key`, `dimension`, `window_seconds` | The amount of each limit now |
//! | `tollgate_used` | gauge |  | `key`, `dimension`, `window_seconds` | What counts against it now |
//! | `tollgate_held` | gauge |  | `key`, `dimension`, `window_seconds` | What requests in flight hold of it; of `concurrency`, how many there are |
//! | `tollgate_waiting` | gauge |  | `key` | Requests in the queue |
//! | `tollgate_store_flushes_total` | counter |  |  | Times that a store was written |
//! | `tollgate_store_failures_total` | counter |  |  | Times that it could not be |
//! | `gen_ai.client.token.usage` | histogram |  | `gen_ai.operation.name`, `gen_ai.provider.name`, `gen_ai.request.model`, `gen_ai.token.type` | Tokens of each request, as its response reports them; `input` or `output` |
//! | `gen_ai.client.operation.duration` | histogram | seconds | `gen_ai.operation.name`, `gen_ai.provider.name`, `gen_ai.request.model`, `error.type` | From the call to the end of the response, the wait included |
//!
//! # Labels
//!
//! - `key` is the name of the quota that a key has: the key itself where it has one of its own (a
//!   model, an account), the glob or the expression that it matches, and `other` where it has none,
//!   or has been forgotten before its request ended. So a key that is made of what a request says, and
//!   may be a secret, is never told; [`with_names`](Metrics::with_names) says otherwise. No more than
//!   [`with_max_keys`](Metrics::with_max_keys) are told apart; the rest is `other`.
//! - `dimension` is `requests`, `tokens`, `input_tokens`, `output_tokens`, `concurrency` or the name
//!   of a custom one; at most 32, then `other`. `none` where others wait or the key cools down.
//! - `window_seconds` is the length of the limit's window; absent of requests in flight.
//! - `error.type` is absent where all went well, else the status (`429`), the code in the body, the
//!   limiter's code (`rpm_exceeded`, ...), `deadline_exceeded`, `queue_full`, `quota_removed`,
//!   `closed`, `not_sent`, `cancelled`, or `_OTHER`; at most 32, then `other`.
//! - `gen_ai.request.model` is named as `key` is: the model's own quota, else that of the key.
//!
//! A request with several keys counts for each. Gauges of keys of one name are added up.
//!
//! # OpenTelemetry
//!
//! Where OpenTelemetry's semantic conventions for generative AI have a name, it is used: version
//! 1.41.0, the last before they moved to a repository of their own; all of them are in development
//! and may change (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>). An exporter to Prometheus
//! writes `_` for the dots. [`TOKEN_BUCKETS`] and [`DURATION_BUCKETS`] are the boundaries that they
//! recommend.
//!
//! # Spans and logs
//!
//! The layer makes a span for each try of a request to a provider, `gen_ai.client.operation` of the
//! target `tollgate::request`, at level `INFO`: within the span that is current at the call, around
//! what the client below does, until the body has ended. Its fields: `otel.name`, `otel.kind`,
//! `otel.status_code` (as `tracing-opentelemetry` reads them), `gen_ai.operation.name`,
//! `gen_ai.provider.name`, `gen_ai.request.model`, `gen_ai.usage.input_tokens`,
//! `gen_ai.usage.output_tokens`, `gen_ai.usage.cache_read.input_tokens`,
//! `gen_ai.usage.cache_creation.input_tokens`, `http.response.status_code`, `error.type`,
//! `tollgate.key`, `tollgate.waited_ms`, `tollgate.reserved_tokens`, `tollgate.charged_tokens`.
//!
//! The limiter logs with the target `tollgate::limiter`: `cooling down`, `reduced` and `recovered` at
//! `INFO`; `quota changed`, `denied` (`dimension`), `waited` (`duration_ms`), `corrected` and
//! `released` (`reserved_tokens`, `charged_tokens`) at `DEBUG`; `granted` and `settled` at `TRACE`.
//! They name the key as it is, and of a request's metadata `entity` and `operation`.
//!
//! Neither knows prompts, answers or headers. Both cost a few loads while nobody collects them.

mod figure;
mod labels;
mod listener;
mod meter;
mod metrics;
mod names;
mod sink;

pub use self::metrics::Metrics;
pub use meter::Meter;

/// Boundaries of `gen_ai.client.token.usage`, in tokens, as the conventions recommend them.
pub const TOKEN_BUCKETS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Boundaries of `gen_ai.client.operation.duration`, in seconds, as the conventions recommend them;
/// good for `tollgate_wait_seconds` too.
pub const DURATION_BUCKETS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
