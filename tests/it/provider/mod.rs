//! What a provider's bytes mean.

mod bounds;
mod charges;
pub(crate) mod corpus;
mod count_tokens;
mod custom;
mod delays;
mod errors;
mod families;
mod headers;
mod properties;
mod quota_table;
mod recorded;
mod requests;
mod scanner;
mod scanner_corpus;
mod scanner_fixtures;
mod scanner_formats;
mod scanner_messages;
#[cfg(feature = "tokenizer")]
mod tokenizer;
