use std::fmt;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};

use axum::Router;
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::service::Service;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::acceptor::Acceptor;
use super::app::App;
use super::auth::is_loopback;
use super::config::Serve;
use super::connection_service::ConnectionService;
use super::error::ServeError;
use super::tokens::Tokens;
use super::{api, health, live, proxy, rate};
use paceline::limiter::Limiter;
use paceline::middleware::BoxError;
use paceline_config::{Config, Loaded, ReloadOutcome, Reloader};
use paceline_limiter::seam;

/// A running server, until it is [shut down](Self::shutdown) or dropped.
///
/// ```
/// use paceline_serve::{Server, Tokens};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let config = paceline_serve::parse("serve: {listen: '127.0.0.1:0'}")?;
/// let limiter = config.builder().build()?;
/// let server = Server::bind(config, limiter, Tokens::default()).await?;
/// println!("listening on http://{}", server.addr());
/// server.shutdown().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    app: Arc<App>,
    service: ConnectionService,
    task: JoinHandle<()>,
    reloader: OnceLock<Arc<Reloader>>,
}

impl Server {
    /// Starts a server on the configured address. One port serves HTTP/1.1 and HTTP/2 without TLS. The
    /// limiter must be built from the same configuration.
    ///
    /// # Errors
    /// Returns a [`ServeError`] if the configuration was loaded without the section `serve`, if
    /// listening on the address fails, or if the address is reachable from other machines and no client
    /// token is set, unless `serve.allow_anonymous` is set.
    ///
    /// # Panics
    /// Panics outside of a Tokio runtime.
    pub async fn bind(
        config: Config,
        limiter: Limiter,
        tokens: Tokens,
    ) -> Result<Self, ServeError> {
        let (serve, tokens) = (Serve::of(&config)?.clone(), tokens.normalized());
        let addr = serve.listen;
        if !is_loopback(addr.ip()) && tokens.client.is_none() && !serve.allow_anonymous {
            return Err(ServeError::Unprotected { addr });
        }
        let listening = async {
            let listener = TcpListener::bind(addr).await?;
            let addr = listener.local_addr()?;
            Ok((listener, addr))
        };
        let (listener, addr) =
            listening.await.map_err(|error: io::Error| ServeError::Listen { addr, error })?;
        let (bounds, drain) = (serve.bounds, serve.drain);
        let app = Arc::new(App::new(config, serve, limiter, tokens, addr));
        let service = ConnectionService::new(Arc::clone(&app), routes(&app));
        let acceptor = Acceptor::new(listener, service.clone(), bounds, app.stopping.clone());
        let drain_cancelled = app.drain_cancelled.clone();
        let drain = async move {
            let _ = timeout(drain, drain_cancelled.cancelled()).await;
        };
        let task = tokio::spawn(acceptor.run(drain));
        Ok(Self { app, service, task, reloader: OnceLock::new() })
    }

    /// Returns the local address.
    pub fn addr(&self) -> SocketAddr {
        self.app.addr
    }

    /// Handles a request without a connection, for benchmarks.
    #[doc(hidden)]
    pub async fn respond<B>(&self, request: Request<B>) -> Response<impl http_body::Body>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let Ok(response) = self.service.call(request).await;
        response
    }

    /// Reloads the configuration whenever its files change, until the server ends. New quotas take effect,
    /// and, of the section `serve`, new limits of `/rate` and new logged status classes.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be spawned.
    pub fn follow(&self, loaded: &Loaded) -> io::Result<()> {
        let app: Weak<App> = Arc::downgrade(&self.app);
        let limiter = &self.app.limiter;
        let reloader = Reloader::start_with(
            loaded,
            limiter,
            |config| config,
            move |status| {
                let app = app.upgrade().filter(|_| status.refused.is_none());
                if let Some((app, serve)) = app.zip(status.config.section::<Serve>()) {
                    app.apply(serve);
                }
            },
        )?;
        let reloader = Arc::new(reloader);
        seam::attach(limiter, Arc::<Reloader>::clone(&reloader));
        let _ = self.reloader.set(reloader);
        Ok(())
    }

    /// Reloads the [followed](Self::follow) files now, even if they have not changed.
    pub async fn reload(&self) -> ReloadOutcome {
        let Some(reloader) = self.reloader.get().map(Arc::clone) else {
            return ReloadOutcome::NoFile;
        };
        // The task reads files, and is cancelled only when the process ends.
        let reload = tokio::task::spawn_blocking(move || reloader.reload()).await;
        reload.unwrap_or(ReloadOutcome::Unchanged)
    }

    /// Stops accepting connections, completes open requests, and returns when all are complete or the
    /// drain time is over. Then open reservations are charged as reserved, and everything is written to
    /// the [store](paceline::store).
    ///
    /// # Errors
    /// Returns an error if the server failed before, or if writing to the store failed; changes since
    /// the last successful write are lost.
    pub async fn shutdown(self) -> io::Result<()> {
        self.shutdown_until(pending()).await
    }

    /// Shuts down like [`shutdown`](Self::shutdown), and closes the remaining connections when `cut`
    /// completes.
    ///
    /// # Errors
    /// Returns the errors of [`shutdown`](Self::shutdown).
    pub async fn shutdown_until(mut self, cut: impl Future<Output = ()>) -> io::Result<()> {
        let app = Arc::clone(&self.app);
        app.stopping.cancel();
        let mut end = pin!(async {
            app.limiter.close().await;
            (&mut self.task).await
        });
        let result = tokio::select! {
            result = &mut end => result,
            () = cut => {
                app.drain_cancelled.cancel();
                end.await
            }
        };
        app.reservations.close(app.limiter.now());
        // Also stores the reservations that have ended since.
        app.limiter.close().await;
        result?;
        match app.limiter.state().unsaved() {
            Some(reason) => Err(io::Error::other(format!("the state is not saved: {reason}"))),
            None => Ok(()),
        }
    }
}

fn routes(app: &Arc<App>) -> Router {
    Router::new()
        .merge(health::routes(app))
        .merge(rate::routes(app))
        .merge(api::routes(app))
        .merge(live::routes(app))
        .merge(proxy::routes(app))
}

/// Stops accepting connections; open requests complete as in a shutdown.
impl Drop for Server {
    fn drop(&mut self) {
        self.app.stopping.cancel();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addr", &self.app.addr).finish_non_exhaustive()
    }
}
