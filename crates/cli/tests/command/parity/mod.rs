//! Rows of the parity table: see tests/it/parity.

mod c07;
mod c14;
mod g01;
#[cfg(unix)]
mod g18;
