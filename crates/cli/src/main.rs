//! The `paceline` command; see `paceline_cli::command`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    paceline_cli::command::main().into()
}
