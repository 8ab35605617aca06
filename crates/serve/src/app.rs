use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::api::Reservations;
use super::config::Serve;
use super::live::Requests;
use super::logged::Logs;
use super::problem::Problem;
use super::rate::Rate;
use super::request_id::RequestIds;
use super::tokens::Tokens;
use tollgate::config::Config;
use tollgate::limiter::Limiter;

/// What all routes of a server share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) limiter: Limiter,
    /// The configuration at the start.
    pub(super) config: Config,
    /// Its section `serve`.
    pub(super) serve: Serve,
    /// Where it listens.
    pub(super) addr: SocketAddr,
    pub(super) tokens: Tokens,
    /// What the rate-limit service keeps.
    pub(super) rate: Rate,
    /// What clients of the JSON API hold.
    pub(super) reservations: Arc<Reservations>,
    pub(super) ids: RequestIds,
    pub(super) logs: Logs,
    /// One for each request that may wait, whatever for.
    pub(super) waiting: Semaphore,
    /// One for whoever looks at all keys.
    surveys: Arc<Semaphore>,
    /// What was answered, for `/metrics`.
    pub(super) requests: Requests,
    /// Done when the server is asked to stop.
    pub(super) stopping: CancellationToken,
    /// Done when it is asked not to wait for the answers that are on their way.
    pub(super) hurrying: CancellationToken,
}

impl App {
    pub(super) fn new(
        config: Config,
        serve: Serve,
        limiter: Limiter,
        tokens: Tokens,
        addr: SocketAddr,
    ) -> Self {
        let rate = Rate::new(&serve, &limiter);
        let reservations = Arc::new(Reservations::of(&serve));
        let (ids, logs) = (RequestIds::new(), Logs::new(&serve.log));
        let waiting = Semaphore::new(serve.bounds.waiting.min(Semaphore::MAX_PERMITS));
        let (requests, stopping) = (Requests::default(), CancellationToken::new());
        Self {
            limiter,
            config,
            serve,
            addr,
            tokens,
            rate,
            reservations,
            ids,
            logs,
            waiting,
            surveys: Arc::new(Semaphore::new(1)),
            requests,
            stopping,
            hurrying: CancellationToken::new(),
        }
    }

    /// Looks at all keys, or at all quotas, aside from what answers requests: it takes a moment where
    /// there are a million. One does at a time, so that however many ask, the threads that block are
    /// there for others too; the rest wait in their turn.
    ///
    /// # Errors
    /// It has panicked.
    pub(super) async fn survey<T: Send + 'static>(
        &self,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        // Nobody closes it.
        let turn = Arc::clone(&self.surveys).acquire_owned().await;
        // It goes on after its client has gone away, and so does its turn.
        let looking = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            look()
        });
        looking.await.map_err(|_| {
            let detail = "this is a fault of the server; its log says more";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
        })
    }

    /// Goes on by another section `serve`, as far as that can be done while it runs.
    pub(super) fn follow(&self, serve: &Serve) {
        self.rate.follow(serve, &self.limiter);
        self.logs.set(&serve.log);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use parking_lot::Mutex;

    use super::*;
    use crate::parse;

    #[test]
    fn however_many_look_at_all_keys_a_thread_is_left_to_others() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let config = parse("serve: {listen: '127.0.0.1:0'}").unwrap();
            let limiter = config.builder().build().unwrap();
            let serve = Serve::of(&config).unwrap().clone();
            let listen = serve.listen;
            let app = Arc::new(App::new(config, serve, limiter, Tokens::default(), listen));
            let (go, gate) = mpsc::channel::<()>();
            let gate = Arc::new(Mutex::new(gate));
            let looks = [(); 10].map(|()| {
                let (app, gate) = (Arc::clone(&app), Arc::clone(&gate));
                tokio::spawn(async move { app.survey(move || gate.lock().recv().is_ok()).await })
            });
            tokio::task::yield_now().await;
            // One of them that is given up in its turn gives that up.
            looks[5].abort();
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            (0..10).for_each(|_| go.send(()).unwrap());
            for (number, look) in looks.into_iter().enumerate() {
                match look.await {
                    Ok(looked) => assert!(looked.is_ok_and(|went| went)),
                    Err(error) => assert!(number == 5 && error.is_cancelled()),
                }
            }
            assert!(app.survey(|| panic!("on purpose")).await.is_err_and(|_: Problem| true));
            assert_eq!(app.survey(|| 7).await.ok(), Some(7));
        });
    }
}
