//! Rows of the parity table that are shown by a test of their own.

mod d05;
mod d07;
mod f09;

/// A client of loopback servers.
#[cfg(all(feature = "reqwest", feature = "simulate"))]
fn reqwest_client() -> reqwest::Client {
    #[cfg(feature = "cli")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}
