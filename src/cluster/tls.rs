use std::sync::{Arc, LazyLock};

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Returns the TLS configuration: the certificates that the system trusts, and the crypto provider
/// installed by the program, or ring.
///
/// The Redis and NATS clients would ask rustls for the process-wide provider. rustls panics if
/// several are linked and none is installed, and installs the only one for the whole process.
pub(super) fn config() -> ClientConfig {
    let chosen = CryptoProvider::get_default().cloned();
    let provider = chosen.unwrap_or_else(|| Arc::new(ring::default_provider()));
    let config = ClientConfig::builder_with_provider(provider);
    let config =
        config.with_safe_default_protocol_versions().expect("the provider supports TLS 1.2 or 1.3");
    config.with_root_certificates(Arc::clone(&ROOTS)).with_no_client_auth()
}

/// Loaded once: reconnecting is frequent and must be fast.
static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if let (true, Some(error)) = (roots.is_empty(), found.errors.first()) {
        tracing::warn!(%error, "failed to read the trusted certificates of the system");
    }
    Arc::new(roots)
});
