//! Rows of the parity table: see tests/PARITY.md.

mod c07;
mod c14;
mod g01;
#[cfg(unix)]
mod g18;
