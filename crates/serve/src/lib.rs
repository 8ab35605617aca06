//! `tollgate serve`: a rate-limit service, a proxy in front of providers, and a live page.
//!
//! One [`Server`] answers what a program in any language asks: may this key do that (`/rate`, `/v1`),
//! and, as a proxy, sends requests to the upstreams of its configuration once they fit. It only composes
//! what the library has: the [`Limiter`](tollgate::Limiter), the layers of
//! [`middleware`](tollgate::middleware), the [`config`](tollgate::config).
//!
//! | path | what |
//! |---|---|
//! | `/rate/{key}`, `/debug` | the rate-limit service, as GoCC's clients ask it |
//! | `/v1/...`, `/openapi.json` | reservations, decisions, figures and quotas as JSON |
//! | `/{upstream}/...` | the proxy |
//! | `/`, `/live` | the page, and the events that it shows |
//! | `/healthz`, `/readyz`, `/metrics` | for who operates it |
//!
//! A request without a token counts as one of this machine only if it names this machine, is of no page of
//! another origin, and wasn't forwarded by a proxy. A head that names its host in two ways is answered 400.
//!
//! The server is configured in the section `serve` of the library's configuration file; [`parse`] reads a
//! text with that section, and [`sections`] registers it to load a file.
//!
//! It doesn't end TLS, and doesn't know who its clients are, but for the tokens that it was given.
//!
#![doc = include_str!("reference.md")]

mod accepting;
mod activity;
mod answer_body;
mod api;
mod app;
mod auth;
mod causes;
mod compressed;
mod config;
mod connection;
mod error;
mod expiring;
mod front;
mod health;
mod host;
mod live;
mod logged;
mod problem;
mod proxy;
mod rate;
mod request_body;
mod request_id;
mod route;
mod server;
mod timed_stream;
mod tokens;
mod watch;

pub use config::{
    Bounds, KeyLimit, Log, LogFormat, LogLevel, Scope, Serve, ServeMode, UnreadRequests, Upstream,
    limiter, parse, sections, with_keys_file,
};
pub use error::ServeError;
pub use server::Server;
pub use tokens::Tokens;
