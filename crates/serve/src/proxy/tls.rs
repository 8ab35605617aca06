use std::error::Error;
use std::io;
use std::sync::Arc;

use axum::http::StatusCode;
use hyper_rustls::ConfigBuilderExt;
use rustls::crypto::ring;
use rustls::{CertificateError, ClientConfig, RootCertStore};

use crate::problem::Problem;

/// Returns a TLS configuration that trusts the system's certificates; on platforms that read them from
/// files, those in `SSL_CERT_FILE` and `SSL_CERT_DIR` instead. Without any trusted certificate, as in a
/// container image without them, upstreams without TLS remain reachable.
pub(super) fn tls() -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions");
    match builder.clone().try_with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            tracing::error!(
                %error,
                "no trusted root certificates found, so upstreams with https are unreachable; install \
                 the system's certificates, or set SSL_CERT_FILE or SSL_CERT_DIR"
            );
            builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    }
}

/// Returns the error for an upstream that failed because of TLS. Names of hosts are only in the log.
pub(super) fn describe_tls_error(name: &str, error: &(dyn Error + 'static)) -> Option<Problem> {
    let error = paceline::causes(error).find_map(tls_error)?;
    let reason = match error {
        rustls::Error::InvalidCertificate(error) => certificate_error(error),
        rustls::Error::InvalidMessage(_) => {
            "did not respond with TLS; if it does not support TLS, set its `base_url` to `http:`"
                .to_owned()
        }
        _ => return None,
    };
    let detail = format!("the upstream `{name}` {reason}");
    Some(Problem::new(StatusCode::BAD_GATEWAY, "upstream_untrusted", detail))
}

fn certificate_error(error: &CertificateError) -> String {
    match error {
        // A bad signature comes from an issuer with the name of a trusted one.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "has a certificate from an untrusted issuer; add the issuer to the system's trusted \
             certificates, or set SSL_CERT_FILE to a file with the issuer's certificate (on Linux; it \
             replaces the system's certificates), and restart the server"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "has a certificate for another host; change `base_url` to the host that the certificate \
             names, or use a certificate for this host (both hosts are in the server's log)"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has an expired certificate, or the clock of this machine is wrong".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "has a certificate that is not yet valid, or the clock of this machine is wrong".to_owned()
        }
        other => format!("has an invalid certificate: {other}"),
    }
}

/// Returns the TLS error inside an I/O error, which is not its source.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    while let Some(error) = inner.downcast_ref::<io::Error>() {
        inner = error.get_ref()?;
    }
    inner.downcast_ref()
}
