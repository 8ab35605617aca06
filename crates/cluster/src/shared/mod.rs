//! Limits shared by many processes, kept in Redis or Valkey.
//!
//! - `shared` implements the limiter's backend, and `builder` configures it. A worker thread owns
//!   the connection.
//! - `coordinator` decides about each request: by a lease (`lease`), by the store (`store`), or
//!   locally while the store is unavailable (`fallback`: each process admits its `share`, or takes
//!   `turns`).
//! - `script` encodes the calls of the Lua script that decides in the server, and decodes its
//!   responses.
//! - `store_connection` tracks whether the store is available; `connection_monitor` keeps its
//!   connection alive, and `availability` logs each outage.
//! - `wakes` receives the store's messages to waiting requests.
//! - `delivery` and `upkeep` report ends of requests in the background and renew reservations;
//!   `outbox` holds the amounts that were admitted without the store until they are charged.

mod availability;
mod builder;
mod connection_monitor;
mod coordinator;
mod counters;
mod delivery;
mod error;
mod eviction;
mod failure;
mod fallback;
mod known_uses;
mod lease;
mod link;
mod log_limit;
mod members;
mod outage;
mod outbox;
mod piece;
mod redis_keys;
mod reservations;
mod script;
mod sentinel;
mod server_clock;
mod settings;
mod share;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod shared;
mod status;
mod store;
mod store_connection;
mod turns;
mod upkeep;
mod url;
mod views;
mod wakes;

pub use builder::SharedBuilder;
pub use error::SharedError;
pub use shared::Shared;
pub use status::SharedStatus;
