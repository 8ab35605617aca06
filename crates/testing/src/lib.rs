//! Helpers that the tests of several packages share: processes, servers, HTTP clients and upstreams,
//! recordings, logs.
//!
//! It knows nothing of tollgate. Nothing of it is published.
#![expect(missing_docs, reason = "read where it is used")]

pub mod corpus;
pub mod full;
pub mod fuzz;
pub mod http;
pub mod log;
pub mod markdown;
pub mod page;
pub mod process;
pub mod servers;
pub mod upstream;
pub mod wire;
