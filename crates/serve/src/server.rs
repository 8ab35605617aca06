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

use super::accepting::Accepting;
use super::app::App;
use super::auth::is_own;
use super::config::Serve;
use super::error::ServeError;
use super::front::Front;
use super::tokens::Tokens;
use super::{api, health, live, proxy, rate};
use tollgate::config::{Config, Loaded, ReloadOutcome, Reloader};
use tollgate::limiter::Limiter;
use tollgate::middleware::BoxError;

/// A server that listens, until it is [shut down](Self::shutdown).
///
/// ```
/// use tollgate_serve::{Server, Tokens};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let config = tollgate_serve::parse("serve: {listen: '127.0.0.1:0'}")?;
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
    front: Front,
    task: JoinHandle<()>,
    reloading: OnceLock<Arc<Reloader>>,
}

impl Server {
    /// Listens where the configuration says, within a Tokio runtime, for HTTP/1.1 and HTTP/2 without
    /// TLS on one port. The limiter is one of the same configuration.
    ///
    /// # Errors
    /// [`ServeError`] if the configuration was loaded without the section `serve`, if the address can't be
    /// listened on, or if it is reachable from other machines and needs no token, unless
    /// `serve.allow_anonymous` is set.
    pub async fn bind(
        config: Config,
        limiter: Limiter,
        tokens: Tokens,
    ) -> Result<Self, ServeError> {
        let (serve, tokens) = (Serve::of(&config)?.clone(), tokens.meant());
        let addr = serve.listen;
        if !is_own(addr.ip()) && tokens.client.is_none() && !serve.allow_anonymous {
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
        let front = Front::new(Arc::clone(&app), routes(&app));
        let accepting = Accepting::new(listener, front.clone(), bounds, app.stopping.clone());
        let hurrying = app.hurrying.clone();
        let drain = async move {
            let _ = timeout(drain, hurrying.cancelled()).await;
        };
        let task = tokio::spawn(accepting.run(drain));
        Ok(Self { app, front, task, reloading: OnceLock::new() })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.app.addr
    }

    /// The response to a request that comes without a connection, for the guard of its speed.
    #[doc(hidden)]
    pub async fn respond<B>(&self, request: Request<B>) -> Response<impl http_body::Body>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let Ok(response) = self.front.call(request).await;
        response
    }

    /// Follows the files that its configuration was loaded from, until it ends: quotas as any limiter
    /// does, and of `serve` the limits of `/rate` and what is logged.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn follow(&self, loaded: &Loaded) -> io::Result<()> {
        let app: Weak<App> = Arc::downgrade(&self.app);
        let limiter = &self.app.limiter;
        let reloading = Reloader::start_with(
            loaded,
            limiter,
            |config| config,
            move |status| {
                let app = app.upgrade().filter(|_| status.refused.is_none());
                if let Some((app, serve)) = app.zip(status.config.section::<Serve>()) {
                    app.follow(serve);
                }
            },
        )?;
        let reloading = Arc::new(reloading);
        limiter.state().attach(Arc::<Reloader>::clone(&reloading));
        let _ = self.reloading.set(reloading);
        Ok(())
    }

    /// Reads the files that it [follows](Self::follow) now, whether they have changed or not.
    pub async fn reload(&self) -> ReloadOutcome {
        let Some(reloading) = self.reloading.get().map(Arc::clone) else {
            return ReloadOutcome::NoFile;
        };
        // It reads files, and only fails as the process ends.
        let reload = tokio::task::spawn_blocking(move || reloading.reload()).await;
        reload.unwrap_or(ReloadOutcome::Unchanged)
    }

    /// Takes no new connections, answers who waits, and ends when all answers on their way have, or
    /// when the time for that is over. Reservations that are open then are charged as reserved, and a
    /// [store](tollgate::store) has all of it.
    ///
    /// # Errors
    /// The server had failed before, or the store could not be written: what was used since it last
    /// could is lost.
    pub async fn shutdown(self) -> io::Result<()> {
        self.shutdown_until(pending()).await
    }

    /// The same, but cuts off the answers that are still on their way when `cut` ends.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub async fn shutdown_until(mut self, cut: impl Future<Output = ()>) -> io::Result<()> {
        let app = Arc::clone(&self.app);
        app.stopping.cancel();
        let mut ending = pin!(async {
            app.limiter.close().await;
            (&mut self.task).await
        });
        let ended = tokio::select! {
            ended = &mut ending => ended,
            () = cut => {
                app.hurrying.cancel();
                ending.await
            }
        };
        app.reservations.close(app.limiter.now());
        // What has ended since is to be written down too.
        app.limiter.close().await;
        ended?;
        match app.limiter.state().unsaved() {
            Some(why) => Err(io::Error::other(format!("the state is not saved: {why}"))),
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

/// Takes no new connections; what is on its way is answered, as when it is shut down.
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
