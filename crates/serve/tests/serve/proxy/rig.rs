//! A proxy in front of upstreams.

use std::net::SocketAddr;

use bytes::Bytes;
use paceline::Limiter;
use paceline::limiter::ManualClock;
use paceline_config::Config;
use paceline_serve::{Serve, Server, Tokens};

pub(crate) use paceline_testing::upstream::{
    TestUpstream, UpstreamExchange, chat, field, http, json, listen, raw,
};

/// A server with the upstream `up`, of the provider `openai` unless configured otherwise.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) server: Server,
    pub(crate) limiter: Limiter,
}

impl Proxy {
    /// Starts a proxy in front of this address; `more` has further lines of the configuration.
    pub(crate) async fn to(upstream: SocketAddr, more: &str) -> Self {
        Self::with(&[("up", upstream, "openai")], "", more).await
    }

    /// Starts a proxy with further settings in the section `serve`.
    pub(crate) async fn serving(upstream: SocketAddr, serve: &str, more: &str) -> Self {
        Self::with(&[("up", upstream, "openai")], serve, more).await
    }

    /// Starts a proxy in front of upstreams with a name, an address and a provider.
    pub(crate) async fn with(
        upstreams: &[(&str, SocketAddr, &str)],
        serve: &str,
        more: &str,
    ) -> Self {
        let config = Self::config(upstreams, serve, more);
        let limiter = paceline_serve::limiter(&config).expect("a limiter");
        Self::start(config, limiter).await
    }

    /// Starts a proxy with a whole configuration.
    pub(crate) async fn of(text: &str) -> Self {
        let config = paceline_serve::parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let limiter = paceline_serve::limiter(&config).expect("a limiter");
        Self::start(config, limiter).await
    }

    /// Starts a proxy in front of the upstream `up` of this provider, on a manual clock.
    pub(crate) async fn timed(
        upstream: SocketAddr,
        provider: &str,
        serve: &str,
        more: &str,
    ) -> (Self, ManualClock) {
        let config = Self::config(&[("up", upstream, provider)], serve, more);
        let clock = ManualClock::new();
        let profile = Serve::of(&config).expect("the section").upstreams[0].profile;
        let builder = config.builder().provider(profile).clock(clock.clone());
        let limiter = builder.build().expect("a limiter");
        (Self::start(config, limiter).await, clock)
    }

    fn config(upstreams: &[(&str, SocketAddr, &str)], serve: &str, more: &str) -> Config {
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
        paceline_serve::parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"))
    }

    async fn start(config: Config, limiter: Limiter) -> Self {
        Self::start_with_tokens(config, limiter, Tokens::default()).await
    }

    /// Starts a proxy with tokens.
    pub(crate) async fn start_with_tokens(
        config: Config,
        limiter: Limiter,
        tokens: Tokens,
    ) -> Self {
        let server = Server::bind(config, limiter.clone(), tokens).await;
        Self { server: server.expect("a free port"), limiter }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr())
    }

    /// Sends a chat to this model through `up`.
    pub(crate) fn chat(&self, model: &str) -> reqwest::RequestBuilder {
        self.post("/up/v1/chat/completions", chat(model))
    }

    /// Posts a JSON body.
    pub(crate) fn post(&self, path: &str, body: impl Into<String>) -> reqwest::RequestBuilder {
        let post = http().post(self.url(path)).body(body.into());
        post.header("content-type", "application/json")
    }

    /// Returns the used and held amounts of all limits of a key.
    pub(crate) fn all_used(&self, key: &str) -> Vec<u64> {
        self.limiter.stats(key).limits.iter().map(|limit| limit.used).collect()
    }

    /// Returns the used and held amount of a key's first limit.
    pub(crate) fn used(&self, key: &str) -> u64 {
        self.limiter.stats(key).limits.first().map_or(0, |limit| limit.used)
    }
}

/// Returns chunks of random bytes from a seed.
pub(crate) fn chunks(seed: u64) -> Vec<Bytes> {
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
