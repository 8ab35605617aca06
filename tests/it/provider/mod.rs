//! What a provider's bytes mean.

mod bounds;
mod charges;
mod corpus;
mod errors;
mod headers;
mod properties;
mod requests;
mod scanner;
