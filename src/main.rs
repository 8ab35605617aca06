//! The `tollgate` command: everything is in `tollgate::cli`.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    tollgate::cli::run(tollgate::cli::Cli::parse()).into()
}
