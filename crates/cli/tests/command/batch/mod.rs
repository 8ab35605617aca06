//! `paceline batch`: its arguments, its files, and complete runs over HTTP.

mod cli;
mod har;
mod input;
mod output;
mod output_resume;
mod report;
mod rig;
mod run_changed;
mod run_command;
mod run_corpus;
mod run_failed_lines;
mod run_failures;
mod run_files;
mod run_learn;
mod run_limits;
#[cfg(target_os = "linux")]
mod run_memory;
mod run_outage;
mod run_providers;
mod run_refusals;
mod run_resume;
mod run_streams;
mod scripted;
mod target;
