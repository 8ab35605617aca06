use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics::{Counter, Gauge, Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use super::board::{Board, SEATS};
use super::page::SAFE;
use crate::app::App;
use tollgate::telemetry::{DURATION_BUCKETS, Meter, Metrics, TOKEN_BUCKETS};

/// The text that Prometheus scrapes.
pub(super) async fn metrics(State(figures): State<Arc<Figures>>) -> Response {
    let app = Arc::clone(&figures.app);
    match app.survey(move || figures.text()).await {
        Ok(text) => ([(CONTENT_TYPE, TEXT)], SAFE, text).into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// Figures of the limiter, as [`telemetry`](tollgate::telemetry) tells them, and of the server. Those of
/// each reservation are told in total: to tell them key by key would cost every request.
pub(super) struct Figures {
    app: Arc<App>,
    board: Arc<Board>,
    meter: Meter,
    recorder: Arc<PrometheusRecorder>,
    page: PrometheusHandle,
}

impl Figures {
    pub(super) fn new(app: &Arc<App>, board: &Arc<Board>) -> Self {
        let recorder = exporter().expect("the buckets are not empty").build_recorder();
        let page = recorder.handle();
        let recorder = Arc::new(recorder);
        let metrics = Metrics::new().with_recorder(Arc::clone(&recorder)).without_reservations();
        let meter = metrics.install(&app.limiter);
        let (app, board) = (Arc::clone(app), Arc::clone(board));
        let figures = Self { app, board, meter, recorder, page };
        figures.describe();
        figures
    }

    /// Sums up what was recorded: a recorder keeps each single value of a histogram until then, for
    /// ever where nobody scrapes.
    pub(super) fn upkeep(&self) -> impl Fn() + Send + 'static {
        let page = self.page.clone();
        move || page.run_upkeep()
    }

    /// One at a time.
    fn text(&self) -> String {
        self.meter.sample();
        self.sample();
        self.page.render()
    }

    fn sample(&self) {
        let totals = self.app.limiter.state().totals();
        self.counter(GRANTED.0, vec![]).absolute(totals.granted);
        self.counter(DENIED.0, vec![]).absolute(totals.denied);
        self.counter(WAITED.0, vec![]).absolute(totals.waited);
        for (route, class, count) in self.app.requests.all().filter(|(.., count)| *count > 0) {
            let labels = vec![Label::new("route", route), Label::new("status", class)];
            self.counter(REQUESTS.0, labels).absolute(count);
        }
        let watchers = SEATS - self.board.seats.available_permits();
        self.gauge(WATCHERS.0, vec![]).set(watchers as f64);
        let build = vec![Label::new("version", env!("CARGO_PKG_VERSION"))];
        self.gauge(BUILD.0, build).set(1.0);
        self.gauge(STARTED.0, vec![]).set(self.board.started_at.as_nanos() as f64 / 1e9);
        if let Some(status) = self.app.limiter.state().backend_status() {
            self.gauge(MEMBERS.0, vec![]).set(status.members as f64);
            self.gauge(CONNECTED.0, vec![]).set(f64::from(u8::from(status.connected)));
            self.counter(DEGRADED.0, vec![]).absolute(status.degraded);
        }
    }

    fn describe(&self) {
        for (name, meaning) in [GRANTED, DENIED, WAITED, REQUESTS, DEGRADED] {
            let name = KeyName::from_const_str(name);
            self.recorder.describe_counter(name, Some(Unit::Count), meaning.into());
        }
        for (name, meaning) in [WATCHERS, BUILD, STARTED, MEMBERS, CONNECTED] {
            let name = KeyName::from_const_str(name);
            self.recorder.describe_gauge(name, None, meaning.into());
        }
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.recorder.register_counter(&Key::from_parts(name, labels), &METADATA)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.recorder.register_gauge(&Key::from_parts(name, labels), &METADATA)
    }
}

fn exporter() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Prefix("gen_ai.client.token".into()), &TOKEN_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix(".duration".into()), &DURATION_BUCKETS)
}

type Described = (&'static str, &'static str);

const GRANTED: Described =
    ("tollgate_serve_granted_total", "Reservations that were granted, of all keys");
const DENIED: Described =
    ("tollgate_serve_denied_total", "Reservations that were refused, of all keys");
const WAITED: Described =
    ("tollgate_serve_waited_total", "Reservations that were granted after a wait, of all keys");
const REQUESTS: Described =
    ("tollgate_serve_requests_total", "Requests that were answered, by route and class of status");
const WATCHERS: Described = ("tollgate_serve_watchers", "Who looks at the live page now");
const BUILD: Described = ("tollgate_build_info", "Always 1; the version is a label");
const STARTED: Described =
    ("process_start_time_seconds", "When the server was started, in seconds since the epoch");
const MEMBERS: Described =
    ("tollgate_cluster_members", "Processes that share the limits, this one included");
const CONNECTED: Described = ("tollgate_cluster_connected", "1 while the shared store answers");
const DEGRADED: Described =
    ("tollgate_cluster_degraded_total", "Decisions that were made without the shared store");

const METADATA: Metadata<'static> = Metadata::new("tollgate", Level::INFO, Some("tollgate_serve"));

const TEXT: &str = "text/plain; version=0.0.4";
