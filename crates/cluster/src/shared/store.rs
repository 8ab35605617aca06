use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Clock, SystemClock};
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::RwLock;

use super::counters::Counters;
use super::failure::Failure;
use super::known_uses::taken;
use super::log_limit::LogLimit;
use super::piece::Piece;
use super::redis_keys::RedisKeys;
use super::script::{Call, Id, Operation, Outcome, Part, Response, ServerTime, View};
use super::server_clock::ServerClock;
use super::settings::Settings;
use super::store_connection::StoreConnection;
use super::views::{Answer, Views};

/// A client of the store: calls the script, repeats calls after a lost connection, and remembers
/// the last known state.
///
/// Does not decide while the store is unavailable.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) settings: Settings,
    pub(super) redis_keys: RedisKeys,
    pub(super) connection: StoreConnection,
    pub(super) counters: Counters,
    pub(super) views: Mutex<Views>,
    /// The clock of the server that answers heartbeats.
    pub(super) heartbeat_clock: Mutex<ServerClock>,
    /// The limiter's clock, which is manual in tests.
    pub(super) clock: Arc<dyn Clock>,
    /// The system's monotonic clock, for timeouts and leases.
    pub(super) ticks: SystemClock,
    /// A random number that identifies this process.
    pub(super) process: u64,
    next: AtomicU64,
    /// Held while a call is made and its answer is recorded, and by a report, which contains all answers.
    recording: RwLock<()>,
    /// The generation of the server's data that has all usage of this process; 0 before the first connection.
    pub(super) generation: AtomicU64,
    /// Limits the lines about keys that other processes limit by other windows.
    windows_log: Mutex<LogLimit>,
    /// Limits the lines about requests that ended after their reservations had expired.
    late_log: Mutex<LogLimit>,
    /// True while the store's messages to waiting requests arrive.
    pub(super) is_listening: AtomicBool,
}

impl Store {
    pub(super) fn new(redis_keys: RedisKeys, settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let ticks = SystemClock::new();
        Self {
            settings,
            redis_keys,
            connection: StoreConnection::new(),
            counters: Counters::default(),
            views: Mutex::default(),
            heartbeat_clock: Mutex::default(),
            clock,
            process: random_id(ticks.now()),
            ticks,
            next: AtomicU64::new(0),
            recording: RwLock::default(),
            generation: AtomicU64::new(0),
            windows_log: Mutex::new(LogLimit::new(1)),
            late_log: Mutex::new(LogLimit::new(1)),
            is_listening: AtomicBool::new(false),
        }
    }

    /// Returns a new id, unique among all processes.
    pub(super) fn id(&self) -> Id {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.process.to_le_bytes());
        id[8..].copy_from_slice(&number.to_le_bytes());
        Id(id)
    }

    /// Returns a string that identifies the cluster slot of a key.
    pub(super) fn slot<'a>(&self, key: &'a str) -> &'a str {
        if self.redis_keys.is_spread() { key } else { "" }
    }

    /// Makes one call on keys of one slot, and repeats it after a lost connection. The configured
    /// timeout runs from `started_at` (by `ticks`).
    ///
    /// # Errors
    /// Returns [`Failure`]; it is then unknown whether the call was executed.
    pub(super) async fn call(
        &self,
        operation: Operation,
        id: Id,
        pieces: &[Piece],
        started_at: Timestamp,
    ) -> Result<Response, Failure> {
        let passed = self.ticks.now() - started_at;
        let left = self.settings.timeout.saturating_sub(passed);
        self.timed(left, self.call_with_retries(operation, id, pieces, false)).await
    }

    /// Makes a call although the store counts as unavailable, to check the connection.
    pub(super) async fn call_while_unavailable(
        &self,
        operation: Operation,
        id: Id,
        pieces: &[Piece],
    ) -> Result<Response, Failure> {
        let call = self.call_with_retries(operation, id, pieces, true);
        self.timed(self.settings.timeout.max(CHECK_TIMEOUT), call).await
    }

    /// Runs a call with a timeout, and records its duration unless it was not sent.
    async fn timed(
        &self,
        timeout: Duration,
        call: impl Future<Output = Result<Response, Failure>>,
    ) -> Result<Response, Failure> {
        let begin = self.ticks.now();
        let response = tokio::time::timeout(timeout, call).await;
        let response = response.unwrap_or(Err(Failure::TimedOut));
        if !matches!(response, Err(Failure::Unavailable)) {
            self.counters.latency.record(self.ticks.now() - begin);
        }
        response
    }

    /// Reports the last known usage of all keys, which a store without data restores.
    ///
    /// Other processes may use a key that only this process knows.
    ///
    /// # Errors
    /// Returns the first [`Failure`] of a call. Keys that the store can't process are skipped.
    pub(super) async fn restore_usage(&self) -> Result<(), Failure> {
        let _all_are_recorded = self.recording.write().await;
        let used = self.views.lock().used_keys();
        let keys_per_call = if self.redis_keys.is_spread() { 1 } else { RESTORED_PER_CALL };
        let calls: Vec<_> = used.chunks(keys_per_call).collect();
        for calls in calls.chunks(MAX_RESTORE_CALLS) {
            let calls = calls
                .iter()
                .map(|pieces| self.call_while_unavailable(Operation::Read, self.id(), pieces));
            for response in join_all(calls).await {
                match response {
                    Err(failure) if !failure.is_call_specific() => return Err(failure),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Repeats a call until the store responds or, unless `even_if_unavailable`, becomes unavailable.
    async fn call_with_retries(
        &self,
        operation: Operation,
        id: Id,
        pieces: &[Piece],
        even_if_unavailable: bool,
    ) -> Result<Response, Failure> {
        let Some(first) = pieces.first() else { return Err(Failure::Unavailable) };
        let slot = self.slot(&first.key);
        // Where the connection is checked, the server may have lost what this process knows.
        let (mut stale, mut restore) = (0, even_if_unavailable);
        loop {
            let (mut link, number) = self.connection.link(even_if_unavailable).await?;
            let _recording = match even_if_unavailable {
                false => Some(self.recording.read().await),
                true => None,
            };
            let redis_keys: SmallVec<[Vec<u8>; 2]> =
                pieces.iter().map(|piece| self.redis_keys.key(&piece.key)).collect();
            let sent = self.ticks.now();
            let (time, known) = self.known(slot, pieces, restore, sent);
            let parts = parts(pieces, &redis_keys, &known);
            // Reports, and keys that other nodes hold, don't depend on the generation.
            let checks = !restore && !self.redis_keys.is_spread();
            let generation = if checks { self.generation.load(Ordering::Relaxed) } else { 0 };
            let call = Call { operation, id, time, generation, parts: &parts };
            let response = match link.call(&call).await {
                Ok(response) => response,
                Err(Failure::ConnectionLost) => {
                    self.connection.drop_link(number);
                    // Only the caller, which checks the connection, opens another one.
                    if even_if_unavailable {
                        return Err(Failure::ConnectionLost);
                    }
                    self.counters.retries.add(1);
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            match response.outcome {
                Outcome::Stale if stale < MAX_STALE_RETRIES => {
                    stale += 1;
                    self.record_time(slot, response.time, sent);
                }
                Outcome::Stale => return Err(Failure::TimedOut),
                Outcome::Lost if !restore => {
                    restore = true;
                    self.connection.check_requested.notify_one();
                }
                Outcome::Outdated => self.connection.request_reports(),
                _ => {
                    self.record_time(slot, response.time, sent);
                    // A report may be answered before those of other processes.
                    if !(restore && operation == Operation::Read) {
                        self.record(operation, id, pieces, &response);
                    }
                    return Ok(response);
                }
            }
        }
    }

    /// Returns the expected server time, and what is known of the keys: with amounts to restore a lost
    /// state, otherwise only the identities of their states.
    fn known(
        &self,
        slot: &str,
        pieces: &[Piece],
        with_amounts: bool,
        sent: Timestamp,
    ) -> (ServerTime, SmallVec<[KnownPart; 2]>) {
        let views = self.views.lock();
        let time = views.time(slot, pieces, sent);
        let known = pieces.iter().map(|Piece { key, rules, .. }| KnownPart {
            view: if with_amounts { views.report(key, rules) } else { views.identity(key) },
            wants_uses: views.wants_uses(key, rules, time.expected),
        });
        let known = known.collect();
        (time, known)
    }

    /// Records the server time in the response to a call that was sent at `sent`.
    pub(super) fn record_time(&self, slot: &str, time: u64, sent: Timestamp) {
        self.views.lock().record_time(slot, time, sent, self.ticks.now());
    }

    fn record(&self, operation: Operation, id: Id, pieces: &[Piece], response: &Response) {
        let mut views = self.views.lock();
        for (index, (piece, view)) in pieces.iter().zip(&response.views).enumerate() {
            let taken = taken(operation, &piece.rules, &piece.amounts, response);
            views.record(&piece.key, &piece.rules, view.clone(), &taken);
            let answer = Answer::of(&response.outcome, index);
            let is_late = views.record_reservation(operation, id, piece, response.time, answer);
            if is_late && self.late_log.lock().begin(self.ticks.now()).is_some() {
                tracing::warn!(
                    key = &*piece.key,
                    "a request ended after its reservation had expired in the shared store: it counts as reserved"
                );
            }
            if view.has_other_windows && self.windows_log.lock().begin(self.ticks.now()).is_some() {
                tracing::warn!(
                    key = &*piece.key,
                    "another machine limits this key by other windows; the limits of both count; \
                     give all machines the same quotas"
                );
            }
        }
    }
}

/// The knowledge of this process about one key of a call.
struct KnownPart {
    view: Option<View>,
    wants_uses: bool,
}

fn parts<'a>(
    pieces: &'a [Piece],
    redis_keys: &'a [Vec<u8>],
    known: &'a [KnownPart],
) -> SmallVec<[Part<'a>; 2]> {
    let parts = pieces.iter().zip(redis_keys).zip(known).map(|((piece, name), known)| Part {
        name,
        rules: &piece.rules,
        amounts: piece.amounts.clone(),
        lease: piece.lease.as_ref(),
        view: known.view.as_ref(),
        wants_uses: known.wants_uses,
    });
    parts.collect()
}

/// Returns a random number, different in each process.
fn random_id(now: Timestamp) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((std::process::id(), now))
}

/// The minimum time for a call that no request waits for, while all processes report at the same time.
const CHECK_TIMEOUT: Duration = Duration::from_millis(500);
/// The number of keys whose usage one call restores, such that a call takes about a millisecond.
const RESTORED_PER_CALL: usize = 32;
/// The maximum number of concurrent calls that restore usage.
const MAX_RESTORE_CALLS: usize = 4;
/// The maximum number of retries after a stale response.
const MAX_STALE_RETRIES: u32 = 2;
