mod builder;
mod connection_monitor;
mod coordinator;
mod counters;
mod error;
mod failure;
mod fallback;
mod lease;
mod link;
mod members;
mod outbox;
mod piece;
mod redis_keys;
mod reservations;
mod script;
mod server_clock;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod shared;
mod status;
mod store;
mod store_connection;
mod upkeep;
mod url;
mod views;

pub use builder::SharedBuilder;
pub use error::SharedError;
pub use shared::Shared;
pub use status::SharedStatus;
