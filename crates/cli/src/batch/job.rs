//! A whole run: reads, sends, writes, and tells how it went.

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

use super::answers::Answers;
use super::attempt::Attempt;
use super::changes::{Changes, Resume};
use super::client::Client;
use super::forecast::Forecast;
use super::gate::Gate;
use super::ids::Ids;
use super::input::{self, Entry, Line, Reader};
use super::intake::{Intake, Room};
use super::long_waits::LongWaits;
use super::output::{Done, LineStatus, OpenError};
use super::plan::Plan;
use super::progress::Progress;
use super::report::Report;
use super::secrets::Secrets;
use super::shared::Shared;
use super::stop::{Halt, Stop};
use super::tally::Tally;
use super::target::Base;
use tollgate::config::Config;
use tollgate::limiter::{BuildError, Builder, Limiter, UnknownKey};
use tollgate::middleware::RateLimitLayer;
use tollgate::provider::Profile;
use tollgate::quota::Quota;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Job {
    /// The file of requests.
    pub input: PathBuf,
    /// The file of results.
    pub output: PathBuf,
    /// A file for failures, if they don't go to the results.
    pub errors: Option<PathBuf>,
    /// Where requests are sent.
    pub base: Base,
    /// What every request carries besides its content type: the credential, and what the API needs.
    /// Values that are [sensitive](http::HeaderValue::set_sensitive) are hidden in what is written.
    pub headers: HeaderMap,
    /// Whose rules count.
    pub profile: Profile,
    /// The limits of each model; where there are none, the profile's, or what responses tell.
    pub quota: Quota,
    /// The quotas and policies of a configuration, as [`configured`](super::configured) has them; a
    /// model that it names keeps to that and not to `quota`.
    pub config: Option<Config>,
    /// How many requests may be in flight at a time.
    pub max_in_flight: usize,
    /// How often a request is sent again.
    pub retries: u32,
    /// How long a try may take, from its sending to the end of its answer.
    pub timeout: Duration,
    /// How long the job waits for its limits before it ends: when every line that waits would have to
    /// wait longer. `None` waits for ever.
    pub max_wait: Option<Duration>,
    /// How long the job waits for a server that has an outage before it ends.
    pub give_up_after: Duration,
    /// Whether results end up in the order of the input.
    pub ordered: bool,
    /// The path of raw bodies.
    pub endpoint: String,
    /// How it goes on with an output of earlier runs.
    pub resume: Resume,
    /// Whether progress is shown on a terminal.
    pub progress: bool,
}

/// A run that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// How it went.
    pub report: Report,
    /// Why it ended before its input did, if it did.
    pub halt: Option<Halt>,
}

/// A run that could not begin.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError {
    /// The input can't be read.
    Input(PathBuf, io::Error),
    /// The output can't be used.
    Open(OpenError),
    /// Lines of the input have changed since an earlier run finished them.
    Changed(PathBuf, Changes),
    /// No HTTP client can be made.
    Client(reqwest::Error),
    /// The limits can't be kept.
    Limits(BuildError),
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Open(error) => error.fmt(f),
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
            Self::Open(error) => Some(error),
            Self::Changed(..) => None,
            Self::Client(error) => Some(error),
            Self::Limits(error) => Some(error),
        }
    }
}

impl Job {
    /// The [`timeout`](Self::timeout) of a job that sets none: as long as the official SDKs wait.
    pub const TIMEOUT: Duration = Duration::from_secs(600);
    /// The [`give_up_after`](Self::give_up_after) of a job that sets none.
    pub const GIVE_UP_AFTER: Duration = Duration::from_secs(3_600);

    /// The limiter of a run: for each model the configuration's quota, or the job's, or the profile's,
    /// or what its responses tell. Its buckets are in this process.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn limiter(&self) -> Result<Limiter, BuildError> {
        self.builder().build()
    }

    /// The builder of that limiter, for who keeps its buckets elsewhere:
    /// [`Config::backend`](tollgate::config::Config::backend).
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
            // How many others have in flight is no concern of this run.
            false if self.is_shared() => builder.quota("*", self.quota.clone()),
            // Of one model, no more are let in than may be in flight.
            false => builder.quota("*", self.quota.clone().concurrency(self.in_flight())),
        }
    }

    /// Reads and estimates the input, and sends nothing.
    ///
    /// # Errors
    /// [`JobError`] if the input can't be read or the limits can't be kept.
    pub fn plan(&self) -> Result<Plan, JobError> {
        self.plan_of(|_| true)
    }

    fn plan_of(&self, is_left: impl Fn(&Line) -> bool) -> Result<Plan, JobError> {
        let limiter = self.limiter().map_err(JobError::Limits)?;
        let plan =
            Plan::read(self.reader(self.open()?), &limiter, (self.profile, &self.base), is_left);
        plan.map_err(|error| JobError::Input(self.input.clone(), error))
    }

    /// Runs the job until its input ends or `stop` halts it. What was in flight has ended then.
    ///
    /// An input that can't be read on, and an output that can't be written to, halt it too: what is
    /// in flight is waited for, and [`Ended::halt`] tells why.
    ///
    /// # Errors
    /// [`JobError`], before anything is sent.
    ///
    /// # Cancel safety
    /// Dropped, it leaves a file that can be resumed; answers in flight are lost.
    pub async fn run(&self, stop: &Stop) -> Result<Ended, JobError> {
        self.run_with(self.limiter().map_err(JobError::Limits)?, stop).await
    }

    /// The same with a limiter that the caller has made by [`limiter`](Self::limiter) or
    /// [`builder`](Self::builder), and keeps in a store, say, or shares with other machines.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    pub async fn run_with(&self, limiter: Limiter, stop: &Stop) -> Result<Ended, JobError> {
        let total = self.count()?;
        let file = self.open()?;
        let gate = Gate::new(limiter.clone(), self.base.clone());
        let bounds = (self.max_in_flight, self.timeout);
        let client =
            Client::new(&self.base, self.headers.clone(), bounds, stop.clone(), gate.clone());
        let client = client.map_err(JobError::Client)?;
        let (output, done) = self.resume_output(&file)?;
        let done = Arc::new(done);
        let layer = RateLimitLayer::new(limiter.clone()).provider(self.profile).discover();
        let layer = layer.observe(Answers::new(self.profile)).retry(self.retries);
        let shared = Arc::new(Shared {
            service: layer.layer(client.clone()),
            once: layer.retry(0).layer(client),
            gate,
            base: self.base.clone(),
            profile: self.profile,
            secrets: Secrets::of(&self.headers),
            tally: Mutex::new(Tally::new(limiter, self.profile)),
            stop: stop.clone(),
            output: Mutex::new(output),
        });
        let intake = Intake::start(self.reader(file), self.max_in_flight);
        let ids = self.send_all(intake, &done, &shared, total).await;
        Ok(self.finish(shared, &ids))
    }

    pub(super) fn reader<R: Read>(&self, file: R) -> Reader<BufReader<R>> {
        Reader::new(BufReader::new(file), self.endpoint.clone())
    }

    fn open(&self) -> Result<File, JobError> {
        File::open(&self.input).map_err(|error| JobError::Input(self.input.clone(), error))
    }

    /// How many lines there are, where somebody looks. A pipe could not be read a second time.
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

    /// Estimates on a thread of its own how long the lines take that are not done; `None` where nobody
    /// looks.
    fn forecast(
        &self,
        total: Option<u64>,
        done: &Arc<Done>,
    ) -> Option<oneshot::Receiver<Forecast>> {
        total?;
        let (job, done) = (self.clone(), Arc::clone(done));
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || {
            let is_left = |line: &Line| !done.contains(&line.custom_id) && !sender.is_closed();
            if let Ok(plan) = job.plan_of(is_left) {
                drop(sender.send(plan.forecast));
            }
        });
        Some(receiver)
    }

    /// Hands every line to the layer, in order, and waits for them all. The ids of the input, where
    /// it was read to its end.
    async fn send_all(
        &self,
        mut intake: Intake,
        done: &Arc<Done>,
        shared: &Arc<Shared>,
        total: Option<u64>,
    ) -> Ids {
        let mut progress = Progress::new(total, self.progress);
        let mut forecast = self.forecast(total, done);
        let (mut tick, mut look) = (tokio::time::interval(TICK), tokio::time::interval(LOOK));
        let limiter = shared.tally.lock().limiter().clone();
        let mut waits = LongWaits::new(self.is_shared(), self.max_wait);
        let (mut lines, mut reading) = (JoinSet::new(), true);
        while reading || !lines.is_empty() {
            tokio::select! {
                biased;
                () = shared.stop.halted(), if reading => reading = false,
                _ = tick.tick() => {
                    if let Some(Ok(forecast)) = forecast.as_mut().map(oneshot::Receiver::try_recv) {
                        shared.tally.lock().set_forecast(forecast);
                    }
                    progress.update(&shared.tally.lock().snapshot());
                    shared.gate.take_notices().iter().for_each(|text| progress.say(text));
                    shared.gate.give_up(self.give_up_after, &shared.stop);
                }
                _ = look.tick() => {
                    let found = waits.look(&limiter, || self.limiter().ok());
                    found.notices.iter().for_each(|text| progress.say(text));
                    if let Some(why) = found.too_long {
                        shared.stop.halt(Halt::Failed(why));
                    }
                }
                Some(ended) = lines.join_next() => shared.stop.check(ended),
                next = intake.next(), if reading => match next {
                    Some((entry, room)) => begin(entry, room, done, shared, &mut lines),
                    None => reading = false,
                },
            }
        }
        shared.gate.take_notices().iter().for_each(|text| progress.say(text));
        progress.finish();
        if shared.stop.reason().is_some() {
            return Ids::default();
        }
        intake.ids().await.unwrap_or_else(|error| {
            let path = self.input.display();
            shared.stop.halt(Halt::Failed(format!("{path}: cannot read to the end: {error}")));
            Ids::default()
        })
    }

    fn finish(&self, shared: Arc<Shared>, ids: &Ids) -> Ended {
        let shared = Arc::into_inner(shared).expect("the tasks that shared it have ended");
        let Shared { stop, output, tally, .. } = shared;
        let report = Report { shared: self.is_shared(), ..tally.into_inner().report() };
        let output = output.into_inner();
        let finished = match self.ordered && stop.reason().is_none() {
            true => output.finish_in_order(ids),
            false => output.finish(),
        };
        if let Err(error) = finished {
            stop.halt(Halt::Failed(error.to_string()));
        }
        Ended { report, halt: stop.reason() }
    }

    /// Whether other machines take of the same limits.
    fn is_shared(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.cluster.is_some())
    }

    fn in_flight(&self) -> u64 {
        u64::try_from(self.max_in_flight).unwrap_or(u64::MAX)
    }
}

fn begin(entry: Entry, room: Room, done: &Done, shared: &Arc<Shared>, lines: &mut JoinSet<()>) {
    match (done.status(&entry), entry) {
        (LineStatus::Changed, entry) => {
            let changes = Changes::of(&entry);
            shared
                .stop
                .halt(Halt::Failed(format!("{changes}; the remaining requests were not sent")));
        }
        (LineStatus::Succeeded, _) => shared.tally.lock().skipped(false),
        (LineStatus::Failed, _) => shared.tally.lock().skipped(true),
        (LineStatus::Open, Entry::Bad(bad)) => shared.write(&bad.into(), b""),
        (LineStatus::Open, Entry::Request(line)) => {
            // It takes its place in the queue here, in the order of the input.
            let first = Attempt::start(&mut shared.service.clone(), &shared.base, &line);
            lines.spawn(go(first, line, Arc::clone(shared), room));
        }
    }
}

async fn go(first: Attempt, line: Line, shared: Arc<Shared>, room: Room) {
    if let Some(outcome) = first.finish(&line, &shared).await {
        shared.write(&outcome.with_hash(line.hash), &line.body);
    }
    drop(room);
}

const TICK: Duration = Duration::from_millis(200);
/// How often it is looked whether something holds the run up for long.
const LOOK: Duration = Duration::from_secs(1);
