use tokio_util::sync::CancellationToken;

use super::tokens::Tokens;
use crate::config::{Config, Serve};
use crate::limiter::Limiter;

/// What all routes of a server share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) limiter: Limiter,
    /// The configuration at the start.
    pub(super) config: Config,
    /// Its section `serve`.
    pub(super) serve: Serve,
    pub(super) tokens: Tokens,
    /// Done when the server is asked to stop.
    pub(super) stopping: CancellationToken,
}
