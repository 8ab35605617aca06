//! Metrics of a limiter through the facade [`metrics`](https://docs.rs/metrics).
//!
//! [`Metrics`] receives every event of a limiter ([`Limiter::listen`](crate::Limiter::listen)), so its
//! counters are exact, regardless of the speed of the exporter. Gauges are updated on demand:
//! [`Meter::sample`].
//!
//! An exporter such as `metrics-exporter-prometheus` (`examples/prometheus.rs`) collects the metrics as
//! the recorder of the process. Spans and logs don't need this module: the layer and the limiter emit
//! them with `tracing` (see below).
//!
//! ```
//! use paceline::telemetry::Metrics;
//! use paceline::{Cost, Limiter, Quota};
//! let exporter = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
//! let page = exporter.handle();
//!
//! let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(1)).build()?;
//! // Without `with_recorder` the global recorder is used.
//! let meter = Metrics::new().with_recorder(exporter).install(&limiter);
//! let _permit = limiter.try_acquire("gpt-4o", &Cost::new())?;
//!
//! meter.sample();
//! let page = page.render();
//! assert!(page.contains(r#"paceline_granted_total{key="gpt-4o"} 1"#));
//! assert!(page.contains(r#"paceline_used{key="gpt-4o",dimension="requests",window_seconds="60"} 1"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | name | type | unit | labels | description |
//! |---|---|---|---|---|
//! | `paceline_granted_total` | counter |  | `key` | Reservations granted |
//! | `paceline_denied_total` | counter |  | `key`, `dimension` | Reservations denied, by the dimension that was exceeded |
//! | `paceline_wait_seconds` | histogram | seconds | `key` | Time that requests spent queued before admission, in seconds |
//! | `paceline_settled_total` | counter |  | `key` | Reservations settled with a charge |
//! | `paceline_released_total` | counter |  | `key` | Reservations released because the request was never sent |
//! | `paceline_reserved_tokens_total` | counter |  | `key`, `dimension` | Tokens that settled reservations had reserved |
//! | `paceline_charged_tokens_total` | counter |  | `key`, `dimension` | Tokens that settled reservations were charged |
//! | `paceline_estimate_ratio` | histogram |  | `key` | Ratio of reserved to charged tokens per request; 1 is an exact estimate |
//! | `paceline_cooling_down_total` | counter |  | `key` | Cool-downs of a key after a refusal by the provider (429, 503, 529) or at the utilization that its quota allows, including those that others announced |
//! | `paceline_reduced_total` | counter |  | `key` | Reductions of a capacity, after a refusal or on request |
//! | `paceline_recovered_total` | counter |  | `key` | Recoveries of a key to its full quota |
//! | `paceline_capacity` | gauge |  | `key`, `dimension`, `window_seconds` | Current amount of each limit of a label that one key has; dollars for `usd` |
//! | `paceline_used` | gauge |  | `key`, `dimension`, `window_seconds` | Current usage that counts against each limit of a label that one key has; dollars for `usd` |
//! | `paceline_held` | gauge |  | `key`, `dimension`, `window_seconds` | Amount of each limit of a label that one key has that requests in flight hold; for `concurrency`, the requests in flight |
//! | `paceline_learned_limit` | gauge |  | `key`, `dimension` | Limits of a label that one key has, measured by the provider's answers, as an amount per second; for `concurrency`, requests in flight |
//! | `paceline_utilization_ratio` | gauge |  | `key`, `window` | Used part of the account's windows, as the provider states it for subscriptions; 1 is used up |
//! | `paceline_waiting` | gauge |  | `key` | Requests that wait in the queues of all keys of a label |
//! | `paceline_store_flushes_total` | counter |  |  | Successful writes of a store |
//! | `paceline_store_failures_total` | counter |  |  | Failed writes of a store |
//! | `paceline_store_pending_keys` | gauge |  |  | Keys with changes that could not be written to a store yet |
//! | `paceline_store_flush_seconds` | histogram | seconds |  | Duration of writes of a store, failures included, in seconds |
//! | `paceline_cluster_connected` | gauge |  |  | 1 while the shared store is reachable, else 0 |
//! | `paceline_cluster_members` | gauge |  |  | Live processes that share the limits, including this one |
//! | `paceline_cluster_undelivered_keys` | gauge |  |  | Keys with usage of an outage that the shared store has not been charged yet |
//! | `paceline_cluster_unacknowledged` | gauge |  |  | Ends of requests that the shared store has not acknowledged yet |
//! | `paceline_cluster_decisions_total` | counter |  | `by` | Decisions of the shared store (`store`), and requests that leases admitted (`lease`) |
//! | `paceline_cluster_degraded_total` | counter |  | `policy` | Decisions made without the shared store, by policy: `closed`, `open` or `local_share` |
//! | `paceline_cluster_uncharged_total` | counter |  | `dimension` | Requests and tokens (`requests`, `tokens`) that `open` admitted beyond the limits during outages, and never charged |
//! | `paceline_cluster_outages_total` | counter |  |  | Outages of the shared store |
//! | `paceline_cluster_timeouts_total` | counter |  |  | Calls to which the shared store did not respond in time |
//! | `paceline_cluster_retries_total` | counter |  |  | Calls to the shared store that were repeated after a lost connection |
//! | `paceline_cluster_connects_total` | counter |  |  | Attempts to connect to the shared store |
//! | `paceline_cluster_call_seconds` | histogram | seconds |  | Duration of calls to the shared store, timeouts included, in seconds |
//! | `paceline_bus_connected` | gauge |  |  | 1 while the bus is connected, else 0 |
//! | `paceline_bus_queued` | gauge |  |  | Messages that wait to be sent to the bus |
//! | `paceline_bus_published_total` | counter |  |  | Messages sent to the bus |
//! | `paceline_bus_failed_total` | counter |  |  | Messages that could not be sent to the bus in time |
//! | `paceline_bus_dropped_total` | counter |  |  | Messages dropped because the queue to the bus was full |
//! | `paceline_bus_received_total` | counter |  |  | Messages received from the bus, own ones included |
//! | `paceline_bus_outages_total` | counter |  |  | Outages of the bus |
//! | `paceline_bus_retries_total` | counter |  |  | Failed attempts to connect to the bus |
//! | `paceline_bus_timeouts_total` | counter |  |  | Messages to which the bus did not respond in time |
//! | `paceline_bus_publish_seconds` | histogram | seconds |  | Duration of sending a message to the bus, failures included, in seconds |
//! | `gen_ai.client.token.usage` | histogram |  | `gen_ai.operation.name`, `gen_ai.provider.name`, `gen_ai.request.model`, `gen_ai.token.type` | Tokens per request, as the response reports them, by type (`input` or `output`) |
//! | `gen_ai.client.operation.duration_seconds` | histogram | seconds | `gen_ai.operation.name`, `gen_ai.provider.name`, `gen_ai.request.model`, `error.type` | Time from the call to the end of the response, including the time in the queue, in seconds |
//!
//! # Labels
//!
//! - `key` is the name of the quota that applies to a key: the key itself if it has a quota of its own (a
//!   model, an account), or else the glob or regular expression that it matches. It is `other` if no quota
//!   applies, or if the key was dropped before its request ended. A key that is derived from a request, and
//!   may be a secret, is therefore never exported, unless [`with_names`](Metrics::with_names) returns it.
//!   [`with_max_keys`](Metrics::with_max_keys) bounds the number of labels; further keys are `other`.
//! - `window` is the provider's name of a window: `5h`, `7d`; it counts among the values of `dimension`.
//! - `dimension` is `requests`, `tokens`, `input_tokens`, `output_tokens`, `concurrency` or the name
//!   of a custom dimension; further values after 32 are `other`. It is `none` if other requests wait or the
//!   key cools down.
//! - `window_seconds` is the length of the limit's window; absent for requests in flight.
//! - `by` and `policy` have the values in the table.
//! - `error.type` is absent after a success. Otherwise it is the status (`429`), the code in the body, the
//!   limiter's code (`rpm_exceeded`, ...), `deadline_exceeded`, `queue_full`, `quota_removed`,
//!   `closed`, `not_sent`, `cancelled`, or `_OTHER`; further values after 32 are `other`.
//! - `gen_ai.request.model` has the same values as `key`: the quota of the model, or else the quota of the
//!   key.
//!
//! A request with several keys counts for each of them. Of keys with the same label, as under a glob, counters and the
//! waiting requests are added up, and the largest utilization counts. Limits can't be added up, nor what is used of
//! them: `paceline_capacity`, `paceline_used`, `paceline_held` and `paceline_learned_limit` are 0 or absent while
//! several keys have the label.
//! [`with_names`](Metrics::with_names) gives such keys labels of their own if they aren't secret, and
//! [`LimiterState::stats`](crate::limiter::LimiterState::stats) has the limits of each key.
//!
//! # OpenTelemetry
//!
//! Names that start with `gen_ai.` are those of OpenTelemetry's semantic conventions for generative AI,
//! version 1.41.0, the last one before they moved to a separate repository. They are in development and may
//! change (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>). An exporter to Prometheus replaces the
//! dots by `_`. [`TOKEN_BUCKETS`] and [`DURATION_BUCKETS`] are the recommended bucket boundaries.
//!
//! # Spans and logs
//!
//! The layer creates a span for each attempt of a request to a provider: `gen_ai.client.operation` with the
//! target `paceline::request` at level `INFO`. Its parent is the span that is current at the call; it
//! encloses the inner client's spans, and ends with the response body. Its fields: `otel.name`, `otel.kind`,
//! `otel.status_code` (as `tracing-opentelemetry` reads them), `gen_ai.operation.name`,
//! `gen_ai.provider.name`, `gen_ai.request.model`, `gen_ai.usage.input_tokens`,
//! `gen_ai.usage.output_tokens`, `gen_ai.usage.cache_read.input_tokens`,
//! `gen_ai.usage.cache_creation.input_tokens`, `http.response.status_code`, `error.type`,
//! `paceline.key`, `paceline.waited_ms`, `paceline.reserved_tokens`, `paceline.charged_tokens`.
//!
//! The limiter logs with the target `paceline::limiter`: `cooling down`, `reduced` and `recovered` at
//! `INFO`; `quota changed`, `denied` (`dimension`), `waited` (`duration_ms`), `corrected` and
//! `released` (`reserved_tokens`, `charged_tokens`) at `DEBUG`; `granted` and `settled` at `TRACE`.
//! They contain the full key, and `entity` and `operation` from the request's metadata.
//! A wait above 30 s is logged at `WARN` with the target `paceline::waits`, and a refusal that stops a key (of the account,
//! of a limit of an hour or longer, or of a server that fails) with the target `paceline::refusals`, with the provider's
//! words as `reason`; their `key` is the name of the quota, or `*`.
//!
//! Spans and logs never contain prompts, responses or headers, except for the words of an error that stops a key; what
//! looks like an API key in them is masked. Without a subscriber both cost a few atomic loads.

mod key_names;
mod label_set;
mod listener;
mod meter;
mod metric_list;
mod metric_spec;
mod metrics;
mod sink;
mod state_metrics;

pub use self::metrics::Metrics;
pub use meter::Meter;

/// The recommended bucket boundaries of `gen_ai.client.token.usage`, in tokens.
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

/// The recommended bucket boundaries of `gen_ai.client.operation.duration_seconds`, in seconds. Suitable for
/// `paceline_wait_seconds` too.
pub const DURATION_BUCKETS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The recommended bucket boundaries of `paceline_cluster_call_seconds`, `paceline_bus_publish_seconds` and
/// `paceline_store_flush_seconds`, in seconds. Their histograms are exact at these boundaries only.
pub const CALL_BUCKETS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];
