//! What a provider's bytes mean.

mod bounds;
mod charges;
mod corpus;
mod errors;
mod headers;
mod properties;
mod requests;
mod scanner;
mod scanner_fixtures;
mod scanner_formats;
mod scanner_messages;
