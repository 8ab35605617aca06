//! What a provider's bytes mean.

mod bounds;
mod charges;
pub(crate) mod corpus;
mod errors;
mod families;
mod headers;
mod properties;
mod requests;
mod scanner;
mod scanner_fixtures;
mod scanner_formats;
mod scanner_messages;
