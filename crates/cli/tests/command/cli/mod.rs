//! Tests of the commands as processes, each in its own home directory.

mod batch;
mod bench;
mod check;
mod completions;
mod config;
mod count;
mod foreign;
mod help;
mod reset;
pub(crate) mod rig;
mod shared_usage;
mod show;
mod simulate;
pub(crate) mod stores;
