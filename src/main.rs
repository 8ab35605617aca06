//! The `tollgate` command: everything is in `tollgate::cli`.

fn main() {}
