use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::app::App;
use super::error::ServeError;
use super::tokens::Tokens;
use super::{api, live, proxy, rate};
use crate::config::Config;
use crate::limiter::Limiter;

/// A server that listens, until it is [shut down](Self::shutdown).
///
/// ```
/// use tollgate::config::Config;
/// use tollgate::serve::{Server, Tokens};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let config = Config::parse("serve: {listen: '127.0.0.1:0'}")?;
/// let limiter = config.builder().build()?;
/// let server = Server::bind(config, limiter, Tokens::default()).await?;
/// println!("listening on http://{}", server.addr());
/// server.shutdown().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    addr: SocketAddr,
    app: Arc<App>,
    task: JoinHandle<io::Result<()>>,
}

impl Server {
    /// Listens where the configuration says, within a Tokio runtime. The limiter is one of the same
    /// configuration.
    ///
    /// # Errors
    /// [`ServeError`] if the address can't be listened on.
    pub async fn bind(
        config: Config,
        limiter: Limiter,
        tokens: Tokens,
    ) -> Result<Self, ServeError> {
        let serve = config.serve.clone();
        let addr = serve.listen;
        let listener = TcpListener::bind(addr).await;
        let listener = listener.map_err(|error| ServeError::Listen { addr, error })?;
        let addr = listener.local_addr().map_err(|error| ServeError::Listen { addr, error })?;
        let stopping = CancellationToken::new();
        let app = Arc::new(App { limiter, config, serve, tokens, stopping });
        let until = app.stopping.clone().cancelled_owned();
        let serving = axum::serve(listener, routes(&app)).with_graceful_shutdown(until);
        let task = tokio::spawn(serving.into_future());
        Ok(Self { addr, app, task })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes no new connections, answers who waits, and ends when all answers on their way have.
    ///
    /// # Errors
    /// The server had failed before.
    pub async fn shutdown(self) -> io::Result<()> {
        self.app.stopping.cancel();
        self.app.limiter.close().await;
        self.task.await?
    }
}

fn routes(app: &Arc<App>) -> Router {
    Router::new()
        .route("/healthz", get(async || ""))
        .merge(rate::routes(app))
        .merge(api::routes(app))
        .merge(live::routes(app))
        .merge(proxy::routes(app))
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addr", &self.addr).finish_non_exhaustive()
    }
}
