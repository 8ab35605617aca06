//! One module for each row of the parity table, named after its id; so are the tests.

mod d01;
mod d03;
#[cfg(all(feature = "axum", feature = "reqwest"))]
mod d06;
