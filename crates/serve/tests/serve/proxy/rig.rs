//! A proxy in front of upstreams.

use std::net::SocketAddr;

use bytes::Bytes;
use tollgate::Limiter;
use tollgate::config::Config;
use tollgate_serve::{Server, Tokens};

pub(super) use tollgate_testing::upstream::{
    TestUpstream, UpstreamExchange, chat, field, http, json, listen, raw,
};

/// A server with the upstream `up`, of the provider `openai` unless configured otherwise.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) server: Server,
    pub(super) limiter: Limiter,
}

impl Proxy {
    /// Starts a proxy in front of this address; `more` has further lines of the configuration.
    pub(super) async fn to(upstream: SocketAddr, more: &str) -> Self {
        Self::with(&[("up", upstream, "openai")], "", more).await
    }

    /// Starts a proxy with further settings in the section `serve`.
    pub(super) async fn serving(upstream: SocketAddr, serve: &str, more: &str) -> Self {
        Self::with(&[("up", upstream, "openai")], serve, more).await
    }

    /// Starts a proxy in front of upstreams with a name, an address and a provider.
    pub(super) async fn with(
        upstreams: &[(&str, SocketAddr, &str)],
        serve: &str,
        more: &str,
    ) -> Self {
        // These tests send requests with any host.
        let section = "serve:\n  listen: '127.0.0.1:0'\n  allow_anonymous: true\n";
        let mut text = format!("{more}\n{section}");
        for line in serve.lines() {
            text += &format!("  {line}\n");
        }
        text += "  upstreams:\n";
        for (name, addr, provider) in upstreams {
            text += &format!("    {name}: {{base_url: 'http://{addr}', provider: {provider}}}\n");
        }
        let config = tollgate_serve::parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let limiter = tollgate_serve::limiter(&config).expect("a limiter");
        Self::start(config, limiter).await
    }

    async fn start(config: Config, limiter: Limiter) -> Self {
        Self::start_with_tokens(config, limiter, Tokens::default()).await
    }

    /// Starts a proxy with tokens.
    pub(super) async fn start_with_tokens(
        config: Config,
        limiter: Limiter,
        tokens: Tokens,
    ) -> Self {
        let server = Server::bind(config, limiter.clone(), tokens).await;
        Self { server: server.expect("a free port"), limiter }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr())
    }

    /// Sends a chat to this model through `up`.
    pub(super) fn chat(&self, model: &str) -> reqwest::RequestBuilder {
        let json = [("content-type", "application/json")];
        let post = http().post(self.url("/up/v1/chat/completions")).body(chat(model));
        json.into_iter().fold(post, |post, (name, value)| post.header(name, value))
    }

    /// Returns the used and held amount of a key's first limit.
    pub(super) fn used(&self, key: &str) -> u64 {
        self.limiter.stats(key).limits.first().map_or(0, |limit| limit.used)
    }
}

/// Returns chunks of random bytes from a seed.
pub(super) fn chunks(seed: u64) -> Vec<Bytes> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let count = next() % 12;
    let mut chunk = |_| {
        let most = [1, 16, 1_024, 40_000][usize::try_from(next() % 4).unwrap()];
        (0..=next() % most).map(|_| next().to_le_bytes()[0]).collect::<Vec<u8>>().into()
    };
    (0..count).map(&mut chunk).collect()
}
