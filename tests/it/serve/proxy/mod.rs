//! The proxy in front of providers.

mod abuse;
mod failures;
mod http2;
mod https;
mod key_bounds;
mod limits;
mod passing;
mod requests;
mod rig;
mod shapes;
mod streams;
mod tls;
mod together;
mod versions;
