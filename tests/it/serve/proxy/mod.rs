//! The proxy in front of providers.

mod abuse;
mod failures;
mod limits;
mod passing;
mod requests;
mod rig;
mod streams;
mod together;
