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
#[cfg(feature = "yaml")]
mod g10_config;
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
mod s05;
mod s06;
mod s07;
mod s08;
mod s09;
mod s10;
mod s11;
mod s12;
mod s13;
mod table;

/// Returns a client of loopback servers.
#[cfg(feature = "reqwest")]
fn reqwest_client() -> reqwest::Client {
    paceline_testing::http::client()
}
