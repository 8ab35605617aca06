//! The files of `tollgate batch`, and its arguments.

mod cli;
mod har;
mod input;
mod output;
mod output_resume;
mod report;
mod target;
