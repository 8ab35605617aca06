//! One module for each row of the parity table, named after its id; so are the tests.

#[cfg(feature = "tower")]
mod d01;
#[cfg(feature = "tower")]
mod d03;
mod d05;
#[cfg(all(feature = "axum", feature = "reqwest"))]
mod d06;
mod d07;
mod f09;

/// A client of loopback servers.
#[cfg(all(feature = "reqwest", feature = "simulate"))]
fn reqwest_client() -> reqwest::Client {
    #[cfg(feature = "cli")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}
