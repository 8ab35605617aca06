use std::path::PathBuf;

/// The certificates of TLS connections, as PEM files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsConfig {
    /// The certificates of the authorities to trust, in place of the system's.
    pub ca: Option<PathBuf>,
    /// The certificate of this client, and its private key.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl TlsConfig {
    /// Returns the certificates, for connections.
    pub(crate) fn certificates(&self) -> paceline_cluster::Tls {
        let tls = paceline_cluster::Tls::new();
        let tls = self.ca.iter().fold(tls, |tls, ca| tls.with_ca(ca));
        self.client.iter().fold(tls, |tls, (cert, key)| tls.with_client(cert, key))
    }
}
