//! One module for each row of the parity table (tests/PARITY.md). The module and its tests are named after
//! the row's id.

mod d01;
mod d02;
mod d03;
mod d04;
mod d05;
#[cfg(all(feature = "axum", feature = "reqwest"))]
mod d06;
mod d07;
mod d08;
mod d09;
mod f01;
mod f02;
mod f03;
mod f04;
mod f05;
#[cfg(feature = "metrics")]
mod f06;
mod f07;
mod f08;
mod f09;
mod g01;
mod g02;
mod g03;
mod g04;
mod g05;
mod g06;
mod g07;
mod g08;
mod g09;
mod g10;
mod g11;
#[cfg(feature = "yaml")]
mod g12;
mod g15;
mod g16;
#[cfg(all(feature = "axum", feature = "reqwest"))]
mod g17;
mod g19;
mod g20;
mod rig;
mod s01;
mod s02;
mod s03;
mod s04;
#[cfg(feature = "cluster")]
mod s05;
#[cfg(feature = "cluster")]
mod s06;
#[cfg(feature = "cluster")]
mod s07;
#[cfg(feature = "cluster")]
mod s08;
#[cfg(feature = "cluster")]
mod s09;
#[cfg(feature = "cluster")]
mod s10;
#[cfg(feature = "cluster")]
mod s11;
mod s12;
#[cfg(feature = "cluster")]
mod s13;
mod table;

/// Returns a client of loopback servers.
#[cfg(feature = "reqwest")]
fn reqwest_client() -> reqwest::Client {
    paceline_testing::http::client()
}
