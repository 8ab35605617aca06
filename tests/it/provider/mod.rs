//! Interpretation of providers' requests, responses and headers.

mod account_limits;
#[cfg(feature = "requests")]
mod charges;
#[cfg(feature = "requests")]
mod corpus;
mod count_tokens;
#[cfg(feature = "requests")]
mod custom;
#[cfg(feature = "requests")]
mod custom_rules;
#[cfg(feature = "requests")]
mod cut_streams;
mod delays;
#[cfg(feature = "requests")]
mod documented_charges;
mod errors;
#[cfg(feature = "requests")]
mod estimates;
mod facts;
mod failure_charges;
mod headers;
mod lookup;
#[cfg(feature = "requests")]
mod models;
#[cfg(feature = "requests")]
mod modes;
#[cfg(feature = "requests")]
mod prices;
#[cfg(feature = "requests")]
mod properties;
#[cfg(feature = "zones")]
mod quota_table;
mod recorded;
#[cfg(feature = "requests")]
mod recordings;
#[cfg(feature = "zones")]
mod refusals;
#[cfg(feature = "requests")]
mod requests;
#[cfg(feature = "requests")]
mod reservations;
#[cfg(feature = "requests")]
mod responses;
#[cfg(feature = "requests")]
mod scanner;
#[cfg(feature = "requests")]
mod scanner_corpus;
mod scanner_fixtures;
mod scanner_formats;
pub(crate) mod scanner_messages;
#[cfg(feature = "requests")]
mod units;
mod usage_on_request;
mod usages;
mod utilization;
