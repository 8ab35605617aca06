//! The server of `paceline serve`: a rate-limit service, a proxy in front of LLM providers, and a live
//! page.
//!
//! A [`Server`] decides for programs in any language whether a request of a key is admitted (`/rate`,
//! `/v1`). As a proxy, it forwards requests to the configured upstreams as soon as the limits allow. It
//! combines the parts of the library: the [`Limiter`](paceline::Limiter), the layers of
//! [`middleware`](paceline::middleware) and the [`config`](paceline_config).
//!
//! | path | purpose |
//! |---|---|
//! | `/rate/{key}`, `/debug` | the rate-limit service, compatible with clients of GoCC |
//! | `/v1/...`, `/openapi.json` | the JSON API: reservations, decisions, statistics and quotas |
//! | `/{upstream}/...` | the proxy |
//! | `/`, `/live/events` | the live page and its events |
//! | `/healthz`, `/readyz`, `/metrics` | health checks and metrics |
//!
//! A request without a token is treated as local only if its host is a loopback address, no web page of
//! another origin sent it, and no proxy forwarded it. A request with two different hosts is refused
//! with 400.
//!
//! The server is configured in the section `serve` of the configuration file; [`parse`] reads a
//! configuration with that section, and [`sections`] registers it for loading files.
//!
//! The server does not terminate TLS. It authorizes clients by its tokens only, and tells them apart by address where they
//! share memory.
//!
#![doc = include_str!("reference.md")]

mod acceptor;
mod access_log;
mod activity;
mod answer;
mod api;
mod app;
mod auth;
mod budget;
mod budgeted_body;
mod client_address;
mod config;
mod connection;
mod connection_service;
mod content_encoding;
mod error;
mod expiry_map;
mod health;
mod host;
mod idle_reaper;
mod length_limit;
mod live;
mod priority;
mod problem;
mod proxy;
mod rate;
mod request_body;
mod request_id;
mod response_body;
mod route;
mod server;
mod single_header;
mod timed_stream;
mod tokens;

pub use config::{
    Bounds, KeyLimit, KeySource, Log, LogFormat, LogLevel, Serve, ServeMode, UnreadRequests,
    Upstream, limiter, parse, sections, with_keys_file,
};
pub use error::ServeError;
pub use server::Server;
pub use tokens::Tokens;
