//! The `tollgate` command: everything is in `tollgate::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate::cli::main().into()
}
