//! The proxy in front of providers.

mod abuse;
mod budgets;
mod encoded_bodies;
mod failures;
mod forwarding;
mod framing;
mod http_versions;
mod key_bounds;
mod limits;
mod prompts;
mod refusals;
mod request_formats;
mod requests;
pub(crate) mod rig;
mod shared_limits;
mod streams;
mod usage;
