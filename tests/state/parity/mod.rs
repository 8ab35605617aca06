//! Rows of the parity table, see tests/PARITY.md.

mod g13;
mod g14;
mod s10;
mod s14;

#[path = "../../it/parity/rig.rs"]
#[expect(dead_code, reason = "most rows are in `it`")]
mod rig;
