//! The `tollgate` command; see `tollgate_cli::command`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    tollgate_cli::command::main().into()
}
