//! Servers with TLS, by a crypto provider chosen for these connections only.

use std::sync::Arc;
use std::time::Duration;

use rcgen::generate_simple_self_signed;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tollgate::cluster::{NatsBus, RedisBus, Shared};

/// Starts a server with a self-signed certificate that sends `greeting` in plain text first.
async fn server(greeting: &str) -> (String, impl Future<Output = String>) {
    let own = generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("a certificate and its key");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let greeting = greeting.to_owned();
    let refused = async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.write_all(greeting.as_bytes()).await.expect("a greeting");
        let handshake = TlsAcceptor::from(Arc::new(config)).accept(stream).await;
        // TLS alert of the client: it takes part in the handshake until it reads the certificate.
        handshake.expect_err("the certificate is not trusted").to_string()
    };
    (address, async {
        tokio::time::timeout(Duration::from_secs(20), refused).await.expect("a handshake")
    })
}

#[tokio::test]
async fn redis_tls_neither_needs_nor_installs_process_provider() {
    let (address, refused) = server("").await;
    let bus = RedisBus::connect(&format!("rediss://{address}")).expect("a URL");
    assert_eq!(refused.await, UNKNOWN);
    drop(bus);
    for scheme in ["rediss", "rediss-cluster"] {
        let (address, refused) = server("").await;
        let shared = Shared::builder(format!("{scheme}://{address}"), "team").connect();
        assert_eq!(refused.await, UNKNOWN, "{scheme}");
        drop(shared);
    }
    assert!(CryptoProvider::get_default().is_none());
}

#[tokio::test]
async fn nats_tls_neither_needs_nor_installs_process_provider() {
    let (address, refused) = server(INFO).await;
    let bus = NatsBus::connect(&format!("tls://{address}")).expect("a URL");
    assert_eq!(refused.await, UNKNOWN);
    drop(bus);
    assert!(CryptoProvider::get_default().is_none());
}

const UNKNOWN: &str = "received fatal alert: UnknownCA";

const INFO: &str = concat!(
    r#"INFO {"server_id":"a","server_name":"a","version":"2.10.0","go":"","host":"127.0.0.1","#,
    r#""port":4222,"headers":true,"max_payload":1048576,"proto":1,"tls_required":true}"#,
    "\r\n"
);
