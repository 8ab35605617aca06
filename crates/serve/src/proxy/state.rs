use std::sync::Arc;

use super::client::Client;
use super::upstream::Upstream;
use crate::app::App;
use paceline::limiter::KeyBudget;

/// The upstreams and their shared state.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) app: Arc<App>,
    pub(super) upstreams: Vec<Upstream>,
}

impl Proxy {
    pub(super) fn new(app: &Arc<App>) -> Self {
        let client = Client::new(&app.serve.bounds);
        let budget = KeyBudget::new(app.serve.bounds.proxy_keys);
        let limiter = app.limiter.with_key_budget(budget);
        let of = |upstream| Upstream::new(upstream, app, &limiter, &client);
        let upstreams = app.serve.upstreams.iter().filter_map(of).collect();
        Self { app: Arc::clone(app), upstreams }
    }
}
