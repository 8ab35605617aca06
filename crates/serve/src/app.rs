use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access_log::AccessLog;
use super::api::reservations::Reservations;
use super::budget::Budget;
use super::config::Serve;
use super::live::request_counts::RequestCounts;
use super::problem::Problem;
use super::rate::rate_service::RateService;
use super::request_id::RequestIds;
use super::tokens::Tokens;
use paceline::limiter::Limiter;
use paceline_config::Config;

/// The state that all routes of a server share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) limiter: Limiter,
    /// The configuration at the start.
    pub(super) config: Config,
    /// The section `serve` of the configuration.
    pub(super) serve: Serve,
    /// The local address.
    pub(super) addr: SocketAddr,
    pub(super) tokens: Tokens,
    /// The state of the rate-limit service.
    pub(super) rate: RateService,
    /// The reservations of the JSON API.
    pub(super) reservations: Arc<Reservations>,
    pub(super) request_ids: RequestIds,
    pub(super) access_log: AccessLog,
    /// The requests over HTTP/2 that have no complete response yet.
    pub(super) streams: Arc<Budget>,
    /// The bytes of request bodies in memory.
    pub(super) bodies: Arc<Budget>,
    /// The bytes of long responses in memory.
    pub(super) answers: Arc<Budget>,
    /// One permit for each request that may wait.
    pub(super) waiting: Semaphore,
    /// One permit for a scan over all keys.
    scans: Arc<Semaphore>,
    /// The numbers of requests, for `/metrics`.
    pub(super) request_counts: RequestCounts,
    /// Cancelled when the server stops.
    pub(super) stopping: CancellationToken,
    /// Cancelled to end the drain before its time.
    pub(super) drain_cancelled: CancellationToken,
}

impl App {
    pub(super) fn new(
        config: Config,
        serve: Serve,
        limiter: Limiter,
        tokens: Tokens,
        addr: SocketAddr,
    ) -> Self {
        let rate = RateService::new(&serve, &limiter);
        let reservations = Arc::new(Reservations::new(&serve));
        let (request_ids, access_log) = (RequestIds::new(), AccessLog::new(&serve.log));
        let (streams, bodies) =
            (Budget::new(serve.bounds.streams), Budget::new(serve.bounds.buffered));
        let waiting = Semaphore::new(serve.bounds.waiting.min(Semaphore::MAX_PERMITS));
        let (request_counts, stopping) = (RequestCounts::default(), CancellationToken::new());
        Self {
            limiter,
            config,
            serve,
            addr,
            tokens,
            rate,
            reservations,
            request_ids,
            access_log,
            streams,
            bodies,
            answers: Budget::new(ANSWERS),
            waiting,
            scans: Arc::new(Semaphore::new(1)),
            request_counts,
            stopping,
            drain_cancelled: CancellationToken::new(),
        }
    }

    /// Returns the longest wait of a request: `waiting.max_wait`, or by default less than the 5 minutes after which
    /// Node's `fetch` and coding agents give up without having learned why.
    pub(super) fn max_wait(&self) -> Option<Duration> {
        self.config.waiting.max_wait_or(Some(Duration::from_secs(240)))
    }

    /// Runs a scan over all keys or quotas on a blocking thread: with a million of them it takes a
    /// moment. Only one scan runs at a time, so that blocking threads stay available for other work;
    /// further scans wait in order.
    ///
    /// # Errors
    /// Returns an internal error if the scan panics.
    pub(super) async fn scan<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.scans).acquire_owned().await;
        // The scan continues, and keeps its permit, if the client disconnects.
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            run()
        });
        task.await.map_err(|_| Problem::internal())
    }

    /// Applies a new section `serve`, as far as possible without a restart.
    pub(super) fn apply(&self, serve: &Serve) {
        self.rate.apply(serve, &self.limiter);
        self.access_log.set(&serve.log);
    }
}

/// The bytes of long responses in memory.
const ANSWERS: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use parking_lot::Mutex;

    use super::*;
    use crate::parse;

    #[test]
    fn concurrent_scans_leave_blocking_threads_for_others() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let config = parse("serve: {listen: '127.0.0.1:0'}").unwrap();
            let limiter = config.builder().build().unwrap();
            let serve = Serve::of(&config).unwrap().clone();
            let listen = serve.listen;
            let app = Arc::new(App::new(config, serve, limiter, Tokens::default(), listen));
            let (release, gate) = mpsc::channel::<()>();
            let gate = Arc::new(Mutex::new(gate));
            let scans = [(); 10].map(|()| {
                let (app, gate) = (Arc::clone(&app), Arc::clone(&gate));
                tokio::spawn(async move { app.scan(move || gate.lock().recv().is_ok()).await })
            });
            tokio::task::yield_now().await;
            // A cancelled scan leaves the queue.
            scans[5].abort();
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            (0..10).for_each(|_| release.send(()).unwrap());
            for (number, scan) in scans.into_iter().enumerate() {
                match scan.await {
                    Ok(result) => assert!(result.is_ok_and(|received| received)),
                    Err(error) => assert!(number == 5 && error.is_cancelled()),
                }
            }
            assert!(app.scan(|| panic!("on purpose")).await.is_err_and(|_: Problem| true));
            assert_eq!(app.scan(|| 7).await.ok(), Some(7));
        });
    }
}
