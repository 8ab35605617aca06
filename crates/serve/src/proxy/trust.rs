use std::error::Error;
use std::io;
use std::sync::Arc;

use axum::http::StatusCode;
use hyper_rustls::ConfigBuilderExt;
use rustls::crypto::ring;
use rustls::{CertificateError, ClientConfig, RootCertStore};

use crate::problem::Problem;

/// Trusts whom the system trusts; where that is read from files, those that `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` name instead. Where nobody is trusted, as in an image without certificates, upstreams
/// without TLS can still be reached.
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
                "no upstream can be reached by https: nobody is trusted by the system, nor by \
                 SSL_CERT_FILE or SSL_CERT_DIR if they are set"
            );
            builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    }
}

/// What is wrong with the TLS of an upstream, and how to mend it, if that is why it failed. The log has
/// the names of hosts.
pub(super) fn distrust(name: &str, error: &(dyn Error + 'static)) -> Option<Problem> {
    let error = tollgate::causes(error).find_map(of_tls)?;
    let why = match error {
        rustls::Error::InvalidCertificate(error) => of_certificate(error),
        rustls::Error::InvalidMessage(_) => {
            "has answered what is no TLS; if it has none, its `base_url` begins with `http:`"
                .to_owned()
        }
        _ => return None,
    };
    let detail = format!("the upstream `{name}` {why}");
    Some(Problem::new(StatusCode::BAD_GATEWAY, "upstream_untrusted", detail))
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        // A bad signature is that of somebody of the same name as one who is trusted.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => "has a certificate of nobody whom the server trusts; have \
            the system trust who has signed it, or name a file that holds the signer's certificate in \
            the variable SSL_CERT_FILE (on Linux; that is then all the server trusts), and start the \
            server again"
            .to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "has a certificate of another host; let `base_url` name the host as its certificate does, \
             or have one made for that host (the server's log has both)"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has a certificate that has expired, or the clock of this machine is wrong".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "has a certificate that is not valid yet, or the clock of this machine is wrong".to_owned()
        }
        other => format!("has a certificate that is not valid: {other}"),
    }
}

/// What TLS has said within this error. An error of the system's kind stands for the one within: it is
/// no cause of it.
fn of_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut within = error.downcast_ref::<io::Error>()?.get_ref()?;
    while let Some(error) = within.downcast_ref::<io::Error>() {
        within = error.get_ref()?;
    }
    within.downcast_ref()
}
