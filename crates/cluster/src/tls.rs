use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The certificates of TLS connections to a store or a bus, as PEM files. Without any, connections trust
/// the certificates that the system trusts, and present none.
///
/// The files are read when a connection is opened, so that renewed certificates apply from the next
/// connection on; a [`NatsBus`](crate::NatsBus) reads them once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    ca: Option<PathBuf>,
    /// The client certificate with its chain, and its private key.
    client: Option<(PathBuf, PathBuf)>,
}

/// The error for a file with certificates or a key that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub reason: String,
}

impl Tls {
    /// Creates the default: the certificates of the system, and no client certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the file with the certificates of the authorities to trust, in place of the system's.
    #[must_use]
    pub fn with_ca(self, path: impl Into<PathBuf>) -> Self {
        Self { ca: Some(path.into()), ..self }
    }

    /// Sets the files with the certificate that the client presents, and with its private key.
    #[must_use]
    pub fn with_client(self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { client: Some((cert.into(), key.into())), ..self }
    }

    /// Reads the files, and returns the TLS configuration with the crypto provider installed by the
    /// program, or ring.
    ///
    /// The Redis and NATS clients would ask rustls for the process-wide provider. rustls panics if
    /// several are linked and none is installed, and installs the only one for the whole process.
    pub(super) fn config(&self) -> Result<ClientConfig, TlsError> {
        let chosen = CryptoProvider::get_default().cloned();
        let provider = chosen.unwrap_or_else(|| Arc::new(ring::default_provider()));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider supports TLS 1.2 or 1.3");
        let config = config.with_root_certificates(self.roots()?);
        let Some((cert, key)) = &self.client else { return Ok(config.with_no_client_auth()) };
        let chain = certificates(cert)?;
        let private =
            PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::of(key, &error))?;
        let unfit =
            |error| TlsError::new(key, format!("does not fit {} ({error})", cert.display()));
        config.with_client_auth_cert(chain, private).map_err(unfit)
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, TlsError> {
        let Some(path) = &self.ca else { return Ok(Arc::clone(&SYSTEM_ROOTS)) };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            let invalid = |error| TlsError::new(path, format!("invalid certificate ({error})"));
            roots.add(certificate).map_err(invalid)?;
        }
        Ok(Arc::new(roots))
    }
}

impl TlsError {
    fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), reason: reason.into() }
    }

    fn of(path: &Path, error: &pem::Error) -> Self {
        let reason = match error {
            pem::Error::Io(error) => format!("cannot be read ({error})"),
            pem::Error::NoItemsFound => "contains no PEM-encoded private key".to_owned(),
            error => format!("invalid PEM file ({error})"),
        };
        Self::new(path, reason)
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for TlsError {}

/// Reads the certificates of a file, which must contain at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => {
            Err(TlsError::new(path, "contains no PEM-encoded certificate"))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(TlsError::of(path, &error)),
    }
}

/// Loaded once: reconnecting is frequent and must be fast.
static SYSTEM_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if let (true, Some(error)) = (roots.is_empty(), found.errors.first()) {
        tracing::warn!(%error, "failed to read the trusted certificates of the system");
    }
    Arc::new(roots)
});
