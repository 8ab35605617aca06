use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics::{Counter, Gauge, Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use super::live_state::LiveState;
use super::page::SECURITY_HEADERS;
use crate::app::App;
use paceline::telemetry::{CALL_BUCKETS, DURATION_BUCKETS, Meter, Metrics, TOKEN_BUCKETS};

/// Handles `GET /metrics`: the text format of Prometheus.
pub(super) async fn get(State(exporter): State<Arc<MetricsExporter>>) -> Response {
    let app = Arc::clone(&exporter.app);
    match app.scan(move || exporter.text()).await {
        Ok(text) => ([(CONTENT_TYPE, TEXT)], SECURITY_HEADERS, text).into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// The metrics of the limiter (see [`telemetry`](paceline::telemetry)) and of the server. Decisions are
/// counted in total only, because counting them by key would slow down every request.
pub(super) struct MetricsExporter {
    app: Arc<App>,
    state: Arc<LiveState>,
    meter: Meter,
    recorder: Arc<PrometheusRecorder>,
    handle: PrometheusHandle,
}

impl MetricsExporter {
    pub(super) fn new(app: &Arc<App>, state: &Arc<LiveState>) -> Self {
        let recorder = prometheus_builder().expect("the buckets are not empty").build_recorder();
        let handle = recorder.handle();
        let recorder = Arc::new(recorder);
        let metrics = Metrics::new().with_recorder(Arc::clone(&recorder)).without_reservations();
        let meter = metrics.install(&app.limiter);
        let (app, state) = (Arc::clone(app), Arc::clone(state));
        let exporter = Self { app, state, meter, recorder, handle };
        exporter.register_descriptions();
        exporter
    }

    /// Returns the upkeep of the recorder, which aggregates histograms: without it, a recorder that is
    /// never scraped grows without bound.
    pub(super) fn upkeep(&self) -> impl Fn() + Send + 'static {
        let handle = self.handle.clone();
        move || handle.run_upkeep()
    }

    /// Renders the metrics. Must not be called concurrently.
    fn text(&self) -> String {
        self.meter.sample();
        self.sample();
        self.handle.render()
    }

    fn sample(&self) {
        let totals = self.app.limiter.state().totals();
        self.counter(GRANTED.0, vec![]).absolute(totals.granted);
        self.counter(DENIED.0, vec![]).absolute(totals.denied);
        self.counter(WAITED.0, vec![]).absolute(totals.waited);
        for (route, class, count) in self.app.request_counts.all().filter(|(.., count)| *count > 0)
        {
            let labels = vec![Label::new("route", route), Label::new("status", class)];
            self.counter(REQUESTS.0, labels).absolute(count);
        }
        self.gauge(CLIENTS.0, vec![]).set(self.state.clients.used() as f64);
        let build = vec![Label::new("version", env!("CARGO_PKG_VERSION"))];
        self.gauge(BUILD.0, build).set(1.0);
        self.gauge(STARTED.0, vec![]).set(self.state.started_at.as_nanos() as f64 / 1e9);
    }

    fn register_descriptions(&self) {
        for (name, description) in [GRANTED, DENIED, WAITED, REQUESTS] {
            let name = KeyName::from_const_str(name);
            self.recorder.describe_counter(name, Some(Unit::Count), description.into());
        }
        for (name, description) in [CLIENTS, BUILD, STARTED] {
            let name = KeyName::from_const_str(name);
            self.recorder.describe_gauge(name, None, description.into());
        }
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.recorder.register_counter(&Key::from_parts(name, labels), &METADATA)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.recorder.register_gauge(&Key::from_parts(name, labels), &METADATA)
    }
}

fn prometheus_builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Prefix("gen_ai.client.token".into()), &TOKEN_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix(".duration_seconds".into()), &DURATION_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_call_seconds".into()), &CALL_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_publish_seconds".into()), &CALL_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_flush_seconds".into()), &CALL_BUCKETS)
}

type Described = (&'static str, &'static str);

const GRANTED: Described = ("paceline_serve_granted_total", "Reservations granted, over all keys");
const DENIED: Described = ("paceline_serve_denied_total", "Reservations refused, over all keys");
const WAITED: Described =
    ("paceline_serve_waited_total", "Reservations granted after waiting, over all keys");
const REQUESTS: Described =
    ("paceline_serve_requests_total", "HTTP requests handled, by route and status class");
const CLIENTS: Described = ("paceline_serve_watchers", "Clients connected to the live page");
const BUILD: Described =
    ("paceline_build_info", "Build information; always 1, with the version as a label");
const STARTED: Described =
    ("process_start_time_seconds", "Start time of the server, in seconds since the Unix epoch");
const METADATA: Metadata<'static> = Metadata::new("paceline", Level::INFO, Some("paceline_serve"));

const TEXT: &str = "text/plain; version=0.0.4";
