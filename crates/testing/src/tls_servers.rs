//! Certificates, and Redis servers, a cluster and Sentinels with TLS.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tempfile::TempDir;

use crate::servers::{Redis, ServerProcess, free};

/// An authority, and the files of the certificates that it has issued.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

#[expect(clippy::new_without_default, reason = "a new authority has a new key")]
impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Issues the certificate `file.pem` and its key, for a host name and until a year.
    pub fn issue(&self, file: &str, host: &str, until: i32) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, file);
        (params.not_before, params.not_after) =
            (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{file}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{file}-key.pem")), key.serialize_pem()).unwrap();
    }

    /// Returns the arguments of a server with the certificate `file.pem`.
    fn arguments(&self, port: u16, file: &str, auth: &str) -> Vec<String> {
        let path = |name: String| self.path(&name).to_string_lossy().into_owned();
        let (port, ca) = (port.to_string(), path("ca.pem".to_owned()));
        let (cert, key) = (path(format!("{file}.pem")), path(format!("{file}-key.pem")));
        let pairs = [
            ("--tls-port", port.as_str()),
            ("--tls-cert-file", &cert),
            ("--tls-key-file", &key),
            ("--tls-ca-cert-file", &ca),
            ("--tls-auth-clients", auth),
        ];
        pairs.iter().flat_map(|(name, value)| [*name, *value]).map(ToOwned::to_owned).collect()
    }
}

/// A Redis server that also listens on a port with TLS.
#[derive(Debug)]
pub struct TlsRedis {
    pub plain: Redis,
    pub port: u16,
}

impl TlsRedis {
    /// Starts a server with the certificate `file.pem`. `auth` is `yes` to require a client certificate.
    pub fn start(authority: &Authority, file: &str, auth: &str, more: &[&str]) -> Self {
        let port = free().port();
        let arguments = authority.arguments(port, file, auth);
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.extend(more);
        Self { plain: Redis::with(&arguments), port }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// A Sentinel that watches one master.
#[derive(Debug)]
pub struct Sentinel(ServerProcess);

impl Sentinel {
    /// Starts a Sentinel for the master `mymaster`, with TLS if `file` names a certificate.
    pub fn start(authority: &Authority, master: u16, file: Option<&str>) -> Self {
        Self(ServerProcess::start("redis-server", &[], |port, folder| {
            let path = folder.join("sentinel.conf");
            let mut text =
                format!("bind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 {master} 1\n");
            match file {
                Some(file) => {
                    text += "port 0\ntls-replication yes\n";
                    for pair in authority.arguments(port, file, "no").chunks(2) {
                        text += &format!("{} {}\n", pair[0].trim_start_matches("--"), pair[1]);
                    }
                }
                None => text += &format!("port {port}\n"),
            }
            std::fs::write(&path, text).unwrap();
            vec![path.to_string_lossy().into_owned(), "--sentinel".to_owned()]
        }))
    }

    pub fn port(&self) -> u16 {
        self.0.address.port()
    }
}
