//! The implementation of the `paceline` command.
//!
//! | module | content |
//! |---|---|
//! | [`batch`] | batches of requests |
//! | [`explain`] | explanations of recorded traffic |
//! | [`command`] | arguments and subcommands |

pub mod batch;
pub mod command;
pub mod explain;
mod latencies;
mod terminal;
