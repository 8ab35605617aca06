//! The `tollgate` command: everything is in `tollgate::cli`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    tollgate::cli::main().into()
}
