use std::sync::{Arc, LazyLock};

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The configuration of TLS connections: the certificates that the system trusts, and the cryptography
/// that the program has installed, else ring's. The clients of both servers would ask rustls
/// for the program's, which panics where several are linked and none is chosen, and which chooses the
/// only one for everybody else in the program too.
pub(super) fn config() -> ClientConfig {
    let chosen = CryptoProvider::get_default().cloned();
    let provider = chosen.unwrap_or_else(|| Arc::new(ring::default_provider()));
    let config = ClientConfig::builder_with_provider(provider);
    let config =
        config.with_safe_default_protocol_versions().expect("the provider supports TLS 1.2 or 1.3");
    config.with_root_certificates(Arc::clone(&ROOTS)).with_no_client_auth()
}

/// Read once: connections are made again and again, each within a short time.
static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if let (true, Some(error)) = (roots.is_empty(), found.errors.first()) {
        tracing::warn!(%error, "failed to read the trusted certificates of the system");
    }
    Arc::new(roots)
});
