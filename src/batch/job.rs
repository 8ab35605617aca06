//! A whole run: reads, sends, writes, and tells how it went.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tower_layer::Layer;

use super::attempt::{self, Attempt, Limited};
use super::client::{ApiKey, Client};
use super::ids::Ids;
use super::input::{self, Entry, Line, Reader};
use super::outcome::Outcome;
use super::output::{Done, FileError, OpenError, Output};
use super::progress::Progress;
use super::report::Report;
use super::stop::{Halt, Stop};
use super::tally::Tally;
use super::target::Base;
use crate::limiter::{BuildError, Limiter, UnknownKey};
use crate::middleware::RateLimitLayer;
use crate::provider::Profile;
use crate::quota::Quota;

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
    /// The key they are sent with.
    pub key: Option<ApiKey>,
    /// Whose rules count.
    pub profile: Profile,
    /// The limits of each model; where there are none, the profile's, or what responses tell.
    pub quota: Quota,
    /// How many requests may be in flight at a time.
    pub max_in_flight: usize,
    /// How often a request is sent again.
    pub retries: u32,
    /// Whether results end up in the order of the input.
    pub ordered: bool,
    /// The path of raw bodies.
    pub endpoint: String,
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
    /// Lines that failed for good in earlier runs.
    pub failed_before: u64,
}

/// A run that could not begin, or could not be brought to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError {
    /// The input can't be read.
    Input(PathBuf, io::Error),
    /// The output can't be used.
    Open(OpenError),
    /// The output can't be completed.
    Finish(FileError),
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
            Self::Finish(error) => error.fmt(f),
            Self::Client(error) => write!(f, "no HTTP client: {error}"),
            Self::Limits(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for JobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input(_, error) => Some(error),
            Self::Open(error) => Some(error),
            Self::Finish(error) => Some(error),
            Self::Client(error) => Some(error),
            Self::Limits(error) => Some(error),
        }
    }
}

/// What all lines of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) service: Limited,
    pub(super) profile: Profile,
    pub(super) retries: u32,
    pub(super) tally: Mutex<Tally>,
    pub(super) stop: Stop,
    output: Mutex<Output>,
}

impl Job {
    /// The limiter of a run: for each model the job's quota, or the profile's, or what its responses
    /// tell.
    ///
    /// # Errors
    /// As [`Builder::build`](crate::limiter::Builder::build).
    pub fn limiter(&self) -> Result<Limiter, BuildError> {
        let builder = Limiter::builder()
            .provider(self.profile)
            .unknown_key(UnknownKey::Learn)
            .max_waiting(usize::MAX);
        match self.quota.is_unlimited() {
            true => builder.build(),
            // Of one model, no more are let in than may be in flight.
            false => builder.quota("*", self.quota.clone().concurrency(self.in_flight())).build(),
        }
    }

    /// Runs the job until its input ends or `stop` halts it. What was in flight has ended then.
    ///
    /// # Errors
    /// [`JobError`]. Results that were written stay; the same job run again goes on from there.
    ///
    /// # Cancel safety
    /// Dropped, it leaves a file that can be resumed; answers in flight are lost.
    pub async fn run(&self, stop: &Stop) -> Result<Ended, JobError> {
        let limiter = self.limiter().map_err(JobError::Limits)?;
        let total = self.count()?;
        let file = File::open(&self.input).map_err(|e| JobError::Input(self.input.clone(), e))?;
        let client = Client::new(self.base.clone(), self.key.clone(), self.max_in_flight);
        let client = client.map_err(JobError::Client)?;
        let (output, done) =
            Output::open(&self.output, self.errors.as_deref()).map_err(JobError::Open)?;
        let layer = RateLimitLayer::new(limiter.clone()).provider(self.profile).discover();
        let shared = Arc::new(Shared {
            service: layer.layer(client),
            profile: self.profile,
            retries: self.retries,
            tally: Mutex::new(Tally::new(limiter, self.profile)),
            stop: stop.clone(),
            output: Mutex::new(output),
        });
        let failed_before = done.failed();
        let reader = Reader::new(BufReader::new(file), self.endpoint.clone());
        let ids = self.send_all(reader, &done, &shared, total).await;
        let ids = ids.map_err(|e| JobError::Input(self.input.clone(), e))?;
        self.finish(shared, &ids, failed_before)
    }

    /// How many lines there are, where somebody looks.
    fn count(&self) -> Result<Option<u64>, JobError> {
        let failed = |error| JobError::Input(self.input.clone(), error);
        if !self.progress {
            return Ok(None);
        }
        let file = File::open(&self.input).map_err(failed)?;
        input::count(BufReader::new(file)).map(Some).map_err(failed)
    }

    /// Hands every line to the layer, in order, and waits for them all.
    async fn send_all(
        &self,
        reader: Reader<BufReader<File>>,
        done: &Done,
        shared: &Arc<Shared>,
        total: Option<u64>,
    ) -> io::Result<Ids> {
        let (entries, mut next) = mpsc::channel(AHEAD);
        let reading = std::thread::spawn(move || read(reader, &entries));
        let mut progress = Progress::new(total, self.progress);
        let mut tick = tokio::time::interval(TICK);
        let mut lines = JoinSet::new();
        let room = Arc::new(Semaphore::new(IN_MEMORY));
        loop {
            tokio::select! {
                biased;
                () = shared.stop.halted() => break,
                _ = tick.tick() => progress.update(&shared.tally.lock().snapshot()),
                Some(_) = lines.join_next() => {}
                entry = next_fitting(&mut next, &room) => match entry {
                    Some((entry, place)) => begin(entry, place, done, shared, &mut lines),
                    None => break,
                },
            }
        }
        drop(next);
        while !lines.is_empty() {
            tokio::select! {
                _ = lines.join_next() => {}
                _ = tick.tick() => progress.update(&shared.tally.lock().snapshot()),
            }
        }
        progress.finish();
        reading.join().unwrap_or_else(|_| Err(io::Error::other("the reader of the input died")))
    }

    fn finish(&self, shared: Arc<Shared>, ids: &Ids, before: u64) -> Result<Ended, JobError> {
        let report = shared.tally.lock().report();
        let halt = shared.stop.reason();
        let shared = Arc::into_inner(shared).expect("every line has ended");
        let output = shared.output.into_inner();
        let finished = match self.ordered && halt.is_none() {
            true => output.finish_in_order(ids),
            false => output.finish(),
        };
        finished.map_err(JobError::Finish)?;
        Ok(Ended { report, halt, failed_before: before })
    }

    fn in_flight(&self) -> u64 {
        u64::try_from(self.max_in_flight).unwrap_or(u64::MAX)
    }
}

impl Shared {
    /// Writes what became of a line. If that fails, the run stops: work without a result is waste.
    fn write(&self, outcome: &Outcome) {
        if let Err(error) = self.output.lock().write(outcome) {
            self.stop.halt(Halt::Failed(error.to_string()));
        }
        self.tally.lock().done(outcome.failure().is_none());
    }
}

/// Reads the input on a thread of its own, as far ahead as there is room.
fn read(
    mut reader: Reader<BufReader<File>>,
    entries: &mpsc::Sender<io::Result<Entry>>,
) -> io::Result<Ids> {
    for entry in reader.by_ref() {
        let entry = entry?;
        if entries.blocking_send(Ok(entry)).is_err() {
            break;
        }
    }
    Ok(reader.into_ids())
}

/// The next line, once there is room for it in memory.
///
/// # Cancel safety
/// Dropped, it has taken nothing: it takes its room before its line.
async fn next_fitting(
    next: &mut mpsc::Receiver<io::Result<Entry>>,
    room: &Arc<Semaphore>,
) -> Option<(Entry, OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    let entry = next.recv().await?.ok()?;
    Some((entry, place))
}

fn begin(
    entry: Entry,
    place: OwnedSemaphorePermit,
    done: &Done,
    shared: &Arc<Shared>,
    lines: &mut JoinSet<()>,
) {
    match entry {
        Entry::Bad(bad) => shared.write(&bad.into()),
        Entry::Request(line) if done.contains(&line.custom_id) => shared.tally.lock().skipped(),
        Entry::Request(line) => {
            // It takes its place in the queue here, in the order of the input.
            let first = Attempt::start(&mut shared.service.clone(), &line);
            lines.spawn(go(first, line, Arc::clone(shared), place));
        }
    }
}

async fn go(first: Attempt, line: Line, shared: Arc<Shared>, place: OwnedSemaphorePermit) {
    if let Some(outcome) = attempt::run(first, &line, &shared).await {
        shared.write(&outcome);
    }
    drop(place);
}

/// Lines that are read before they are needed.
const AHEAD: usize = 64;
/// Lines that are in memory at a time, waiting or in flight.
const IN_MEMORY: usize = 4_096;
const TICK: Duration = Duration::from_millis(200);
