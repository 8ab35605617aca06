//! Test helpers that several packages share: processes, servers, HTTP clients and upstreams, recordings,
//! logs.
//!
//! The crate doesn't depend on paceline, and is not published.
#![expect(missing_docs, reason = "most test helpers are self-explanatory")]

pub mod corpus;
pub mod event_stream;
pub mod full;
pub mod fuzz;
pub mod http;
pub mod log_buffer;
pub mod markdown;
pub mod metrics_page;
pub mod process;
pub mod servers;
pub mod set_clock;
pub mod tls_servers;
mod until;
pub mod upstream;
pub mod wire;

pub use until::until;
