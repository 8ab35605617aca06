//! One module for each row of the parity table, named after its id; so are the tests.

#[cfg(feature = "cli")]
mod c01;
#[cfg(feature = "cli")]
mod c02;
#[cfg(feature = "cli")]
mod c03;
#[cfg(feature = "cli")]
mod c04;
#[cfg(feature = "cli")]
mod c05;
#[cfg(feature = "cli")]
mod c06;
#[cfg(feature = "cli")]
mod c07;
#[cfg(feature = "cli")]
mod c08;
#[cfg(feature = "cli")]
mod c09;
#[cfg(feature = "cli")]
mod c10;
#[cfg(feature = "cli")]
mod c11;
#[cfg(feature = "cli")]
mod c12;
#[cfg(feature = "cli")]
mod c13;
#[cfg(feature = "cli")]
mod c14;
#[cfg(feature = "tower")]
mod d01;
mod d02;
#[cfg(feature = "tower")]
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
#[cfg(feature = "sqlite")]
mod g13;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod g14;
mod g15;
mod g16;
#[cfg(all(feature = "axum", feature = "reqwest"))]
mod g17;
#[cfg(all(feature = "cli", unix))]
mod g18;
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
#[cfg(feature = "simulate")]
mod s13;
#[cfg(feature = "cli")]
mod s14;

/// A client of loopback servers.
#[cfg(all(feature = "reqwest", any(feature = "simulate", feature = "axum")))]
fn reqwest_client() -> reqwest::Client {
    #[cfg(feature = "cli")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}
