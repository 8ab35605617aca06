//! The proxy in front of providers.

mod abuse;
mod failures;
mod key_bounds;
mod limits;
mod passing;
mod requests;
mod rig;
mod shapes;
mod streams;
mod together;
mod versions;
