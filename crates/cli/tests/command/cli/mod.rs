//! The command, as it is called: real processes, each in folders of its own.

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
mod show;
pub(crate) mod stores;
