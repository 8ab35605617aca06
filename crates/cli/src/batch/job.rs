//! Runs of a batch job.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tower_layer::Layer;

use super::attempt::Attempt;
use super::changes::{Changes, Resume};
use super::client::Client;
use super::forecast::Forecast;
use super::ids::Ids;
use super::input::{self, InputLine, ParsedLine, Reader};
use super::input_queue::{InputQueue, MemoryPermit};
use super::job_context::JobContext;
use super::long_waits::LongWaits;
use super::outages::Outages;
use super::output::{FinishedRequests, LineStatus, OutputError};
use super::plan::Plan;
use super::progress::Progress;
use super::report::Report;
use super::response_policy::ResponsePolicy;
use super::run_stats::RunStats;
use super::secrets::Secrets;
use super::stop::{Halt, Stop};
use super::target::Base;
use paceline::limiter::{BuildError, Builder, Limiter, Priority, UnknownKey};
use paceline::middleware::RateLimitLayer;
use paceline::provider::Profile;
use paceline::quota::Quota;
use paceline_config::Config;

/// A batch job.
#[derive(Debug, Clone)]
pub struct Job {
    /// The input file.
    pub input: PathBuf,
    /// The output file.
    pub output: PathBuf,
    /// A file for failures; `None` writes them to the output.
    pub errors: Option<PathBuf>,
    /// The base URL.
    pub base: Base,
    /// Headers of every request besides the content type, such as the credential. Values marked as
    /// [sensitive](http::HeaderValue::set_sensitive) are hidden in the output.
    pub headers: HeaderMap,
    /// The provider profile.
    pub profile: Profile,
    /// The limits of each model; if unlimited, those of the profile or of responses apply.
    pub quota: Quota,
    /// A configuration, prepared by [`configured`](super::configured): its quotas precede `quota`.
    pub config: Option<Config>,
    /// The maximum number of requests in flight.
    pub max_in_flight: usize,
    /// The maximum number of retries.
    pub retries: u32,
    /// The timeout of one attempt, from sending the request to the end of the response.
    pub timeout: Duration,
    /// The longest wait for the limits: the job ends if every queued line would wait longer.
    pub max_wait: Option<Duration>,
    /// The priority of the requests in the limiter's queues; `None` is that of the limiter's policy.
    pub priority: Option<Priority>,
    /// The longest outage of the server before the job ends.
    pub give_up_after: Duration,
    /// Sort the results into input order at the end.
    pub ordered: bool,
    /// The path for raw bodies.
    pub endpoint: String,
    /// The options for resuming an output.
    pub resume: Resume,
    /// Show progress on a terminal.
    pub progress: bool,
}

/// The result of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunResult {
    /// The report.
    pub report: Report,
    /// The reason if the run was stopped early.
    pub halt: Option<Halt>,
}

/// An error that prevents a run from starting.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError {
    /// The input can't be read.
    Input(PathBuf, io::Error),
    /// The output can't be used.
    Output(OutputError),
    /// Input lines have changed since an earlier run finished them.
    Changed(PathBuf, Changes),
    /// The HTTP client can't be built.
    Client(reqwest::Error),
    /// The limiter can't be built.
    Limits(BuildError),
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Output(error) => error.fmt(f),
            Self::Changed(path, changes) => {
                write!(f, "{}: {changes}; nothing was sent", path.display())
            }
            Self::Client(error) => write!(f, "HTTP client: {error}"),
            Self::Limits(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for JobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input(_, error) => Some(error),
            Self::Output(error) => Some(error),
            Self::Changed(..) => None,
            Self::Client(error) => Some(error),
            Self::Limits(error) => Some(error),
        }
    }
}

impl Job {
    /// The default [`timeout`](Self::timeout), that of the official SDKs.
    pub const TIMEOUT: Duration = Duration::from_secs(600);
    /// The default [`give_up_after`](Self::give_up_after).
    pub const GIVE_UP_AFTER: Duration = Duration::from_secs(3_600);

    /// Returns a limiter for a run, with local buckets: each model uses the configuration's quota,
    /// else the job's, else the profile's, else the limits of its responses.
    ///
    /// # Errors
    /// See [`Builder::build`].
    pub fn limiter(&self) -> Result<Limiter, BuildError> {
        self.builder().build()
    }

    /// Returns the builder of that limiter, for a shared [`backend`](paceline_config::Config::backend).
    pub fn builder(&self) -> Builder {
        let builder = match &self.config {
            Some(config) => config.builder(),
            None => Limiter::builder()
                .provider(self.profile)
                .unknown_key(UnknownKey::Learn)
                .max_waiting(usize::MAX),
        };
        match self.quota.is_unlimited() {
            true => builder,
            // Concurrency is limited per run, not across machines.
            false if self.is_shared() => builder.quota("*", self.quota.clone()),
            // Each model admits at most as many requests as may be in flight.
            false => builder.quota("*", self.quota.clone().concurrency(self.in_flight())),
        }
    }

    /// Estimates the input without sending anything.
    ///
    /// # Errors
    /// [`JobError`] if the input can't be read or the limiter can't be built.
    pub fn plan(&self) -> Result<Plan, JobError> {
        self.plan_of(|_| true)
    }

    fn plan_of(&self, is_left: impl Fn(&InputLine) -> bool) -> Result<Plan, JobError> {
        let limiter = self.limiter().map_err(JobError::Limits)?;
        let plan =
            Plan::read(self.reader(self.open()?), &limiter, self.profile, &self.base, is_left);
        plan.map_err(|error| JobError::Input(self.input.clone(), error))
    }

    /// Runs the job until its input ends or `stop` halts it, then waits for the requests in flight.
    ///
    /// An I/O error of the input or output also halts the run; see [`RunResult::halt`].
    ///
    /// # Errors
    /// [`JobError`] before anything is sent.
    ///
    /// # Cancel safety
    /// If the future is dropped, the output can be resumed; responses in flight are lost.
    pub async fn run(&self, stop: &Stop) -> Result<RunResult, JobError> {
        self.run_with(self.limiter().map_err(JobError::Limits)?, stop).await
    }

    /// Runs the job with a limiter from [`limiter`](Self::limiter) or [`builder`](Self::builder),
    /// which the caller may keep in a store or share with other machines.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    pub async fn run_with(&self, limiter: Limiter, stop: &Stop) -> Result<RunResult, JobError> {
        let total = self.count()?;
        let file = self.open()?;
        let client = Client::new(
            &self.base,
            self.headers.clone(),
            self.max_in_flight,
            self.timeout,
            stop.clone(),
            limiter.clone(),
        );
        let client = client.map_err(JobError::Client)?;
        let (output, done) = self.resume_output(&file)?;
        let done = Arc::new(done);
        let layer = RateLimitLayer::new(limiter.clone()).max_waiting(usize::MAX);
        let prices = self.config.as_ref().map(|config| config.prices.clone()).unwrap_or_default();
        let layer = layer.provider(self.profile).prices(prices.clone()).wait_for_server();
        let layer = match self.priority {
            Some(priority) => layer.priority(priority),
            None => layer,
        };
        let layer = layer.observe(ResponsePolicy::new(self.profile)).retry(self.retries);
        let shared = Arc::new(JobContext {
            service: layer.layer(client),
            retries: self.retries,
            limiter: limiter.clone(),
            base: self.base.clone(),
            profile: self.profile,
            secrets: Secrets::of(&self.headers),
            stats: Mutex::new(RunStats::new(limiter, self.profile, prices)),
            stop: stop.clone(),
            output: Mutex::new(output),
        });
        let input_queue = InputQueue::start(self.reader(file), self.max_in_flight);
        let ids = self.send_all(input_queue, &done, &shared, total).await;
        Ok(self.finish(shared, &ids))
    }

    pub(super) fn reader<R: Read>(&self, file: R) -> Reader<BufReader<R>> {
        Reader::new(BufReader::new(file), self.endpoint.clone())
    }

    fn open(&self) -> Result<File, JobError> {
        File::open(&self.input).map_err(|error| JobError::Input(self.input.clone(), error))
    }

    /// Counts the input lines if progress is shown; `None` for a pipe, which can't be read twice.
    fn count(&self) -> Result<Option<u64>, JobError> {
        let failed = |error| JobError::Input(self.input.clone(), error);
        if !Progress::is_shown(self.progress) {
            return Ok(None);
        }
        let file = self.open()?;
        match file.metadata().map_err(failed)?.is_file() {
            true => input::count(BufReader::new(file)).map(Some).map_err(failed),
            false => Ok(None),
        }
    }

    /// Estimates the time for the remaining lines on another thread, if progress is shown.
    fn forecast(
        &self,
        total: Option<u64>,
        done: &Arc<FinishedRequests>,
    ) -> Option<oneshot::Receiver<Forecast>> {
        total?;
        let (job, done) = (self.clone(), Arc::clone(done));
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || {
            let is_left = |line: &InputLine| !done.contains(&line.custom_id) && !sender.is_closed();
            if let Ok(plan) = job.plan_of(is_left) {
                drop(sender.send(plan.forecast));
            }
        });
        Some(receiver)
    }

    /// Passes every line to the layer in order, and waits for all. Returns the ids of the input if
    /// it was read to its end.
    async fn send_all(
        &self,
        mut input_queue: InputQueue,
        done: &Arc<FinishedRequests>,
        shared: &Arc<JobContext>,
        total: Option<u64>,
    ) -> Ids {
        let mut progress = Progress::new(total, self.progress);
        let mut forecast = self.forecast(total, done);
        let mut update = tokio::time::interval(UPDATE_INTERVAL);
        let mut wait_check = tokio::time::interval(WAIT_CHECK_INTERVAL);
        let mut outages = Outages::new(self.base.clone(), self.give_up_after);
        let mut waits = LongWaits::new(self.max_wait);
        let (mut lines, mut reading) = (JoinSet::new(), true);
        while reading || !lines.is_empty() {
            tokio::select! {
                biased;
                () = shared.stop.halted(), if reading => reading = false,
                _ = update.tick() => {
                    if let Some(Ok(forecast)) = forecast.as_mut().map(oneshot::Receiver::try_recv) {
                        shared.stats.lock().set_forecast(forecast);
                    }
                    progress.update(&shared.stats.lock().snapshot());
                }
                _ = wait_check.tick() => {
                    let (keys, now) = (shared.limiter.state().stats(), shared.limiter.now());
                    let answered_at = shared.stats.lock().answered_at();
                    let outages = outages.check(&keys, answered_at, now);
                    for found in [outages, waits.check(&keys, lines.len(), answered_at, now)] {
                        found.notices.iter().for_each(|text| progress.notify(text));
                        found.too_long.into_iter().for_each(|why| shared.stop.halt(Halt::Failed(why)));
                    }
                }
                Some(ended) = lines.join_next() => shared.stop.check(ended),
                next = input_queue.next(), if reading => match next {
                    Some((parsed, memory)) => start_line(parsed, memory, done, shared, &mut lines),
                    None => reading = false,
                },
            }
        }
        let (keys, now) = (shared.limiter.state().stats(), shared.limiter.now());
        outages.notices(&keys, now).iter().for_each(|text| progress.notify(text));
        progress.finish();
        if shared.stop.reason().is_some() {
            return Ids::default();
        }
        input_queue.ids().await.unwrap_or_else(|error| {
            let path = self.input.display();
            shared.stop.halt(Halt::Failed(format!("{path}: cannot read to the end: {error}")));
            Ids::default()
        })
    }

    fn finish(&self, shared: Arc<JobContext>, ids: &Ids) -> RunResult {
        let shared = Arc::into_inner(shared).expect("all tasks that shared the context have ended");
        let JobContext { stop, output, stats, .. } = shared;
        let report = Report { shared: self.is_shared(), ..stats.into_inner().report() };
        let output = output.into_inner();
        let finished = match self.ordered && stop.reason().is_none() {
            true => output.finish_in_order(ids),
            false => output.finish(),
        };
        if let Err(error) = finished {
            stop.halt(Halt::Failed(error.to_string()));
        }
        RunResult { report, halt: stop.reason() }
    }

    /// Returns true if the limits are shared with other machines.
    fn is_shared(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.cluster.is_some())
    }

    fn in_flight(&self) -> u64 {
        u64::try_from(self.max_in_flight).unwrap_or(u64::MAX)
    }
}

fn start_line(
    parsed: ParsedLine,
    memory: MemoryPermit,
    done: &FinishedRequests,
    shared: &Arc<JobContext>,
    lines: &mut JoinSet<()>,
) {
    match (done.status(&parsed), parsed) {
        (LineStatus::Changed, parsed) => {
            let changes = Changes::of(&parsed);
            shared
                .stop
                .halt(Halt::Failed(format!("{changes}; the remaining requests were not sent")));
        }
        (LineStatus::Succeeded, _) => shared.stats.lock().skipped(false),
        (LineStatus::Failed, _) => shared.stats.lock().skipped(true),
        (LineStatus::Open, ParsedLine::Invalid(bad)) => shared.write(&bad.into(), b""),
        (LineStatus::Open, ParsedLine::Request(line)) => {
            // Queued here, in input order.
            let first = Attempt::start(&mut shared.service.clone(), &shared.base, &line);
            lines.spawn(finish_line(first, line, Arc::clone(shared), memory));
        }
    }
}

async fn finish_line(
    first: Attempt,
    line: InputLine,
    shared: Arc<JobContext>,
    memory: MemoryPermit,
) {
    if let Some(outcome) = first.finish(&line, &shared).await {
        shared.write(&outcome.with_hash(line.hash), &line.body);
    }
    drop(memory);
}

/// The interval of updates of the progress line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);
/// The interval of checks for long waits.
const WAIT_CHECK_INTERVAL: Duration = Duration::from_secs(1);
