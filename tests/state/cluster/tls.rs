//! Servers with TLS, by a crypto provider chosen for these connections only.

use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{Bus, NatsBus, RedisBus, Shared, Tls};
use paceline::quota::Quota;
use paceline::{Cost, Limiter};
use paceline_testing::servers::Redis;
use rcgen::generate_simple_self_signed;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::shared::{closed, limiter};
use paceline_testing::tls_servers::{Authority, Sentinel, TlsRedis};
use paceline_testing::until;

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

/// Asserts that limits are shared through the server at this URL.
fn assert_shared(url: &str, tls: &Tls) {
    let connect = || closed(url).tls(tls.clone()).connect().unwrap();
    let (one, other) = (connect(), connect());
    until(url, || one.status().connected && other.status().connected);
    let (one, other) = (limiter(&one, Quota::new().rpd(4)), limiter(&other, Quota::new().rpd(4)));
    let admitted = |limiter: &Limiter, most| {
        (0..most).filter(|_| limiter.try_acquire(url, &Cost::new()).is_ok()).count()
    };
    assert_eq!(admitted(&one, 3) + admitted(&other, 9), 4, "{url}");
}

/// Asserts that the store is unavailable for this cause.
fn assert_cause(url: &str, tls: &Tls, cause: &str) {
    let shared = Shared::builder(url, "account").tls(tls.clone()).connect().unwrap();
    let found = || shared.outage_cause().unwrap_or_default();
    let begin = std::time::Instant::now();
    while !found().contains(cause) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{}, not {cause}", found());
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

#[test]
fn client_certificates_are_presented_to_server_and_bus() {
    let authority = Authority::new();
    authority.issue("server", "127.0.0.1", 2200);
    authority.issue("client", "client", 2200);
    let redis = TlsRedis::start(&authority, "server", "yes", &[]);
    let client = client(&authority);
    for scheme in ["rediss", "valkeys"] {
        assert_shared(&format!("{scheme}://{}", redis.address()), &client);
    }
    let bus = RedisBus::connect_with_tls(&format!("rediss://{}", redis.address()), client).unwrap();
    until("the bus is connected", || bus.status().connected);
    let url = format!("rediss://{}", redis.address());
    assert_cause(&url, &trusted(&authority), "TLS: the server requires a client certificate; ");
    let other = Authority::new();
    other.issue("client", "client", 2200);
    let key = other.path("client-key.pem");
    let foreign = trusted(&authority).with_client(other.path("client.pem"), key);
    assert_cause(&url, &foreign, "TLS: the server rejects the client certificate; ");
}

#[test]
fn nodes_of_cluster_get_certificates_of_their_own_store() {
    let authority = Authority::new();
    authority.issue("server", "127.0.0.1", 2200);
    authority.issue("client", "client", 2200);
    let cluster = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let redis = TlsRedis::start(&authority, "server", "yes", &cluster);
    let connection = redis::Client::open(redis.plain.url()).unwrap().get_connection().unwrap();
    let connection = std::cell::RefCell::new(connection);
    let mut command = redis::cmd("CLUSTER");
    command.arg("ADDSLOTSRANGE").arg(0).arg(16_383).exec(&mut connection.borrow_mut()).unwrap();
    until("the cluster is up", || {
        let mut info = redis::cmd("CLUSTER");
        let info = info.arg("INFO").query::<String>(&mut connection.borrow_mut());
        info.unwrap().contains("cluster_state:ok")
    });
    let url = format!("rediss-cluster://{}", redis.address());
    // Another store on another thread, with other certificates.
    let other = Shared::builder(&url, "account").tls(trusted(&authority)).connect().unwrap();
    assert_shared(&url, &client(&authority));
    assert!(!other.status().connected);
}

#[test]
fn sentinels_are_asked_with_and_without_tls() {
    let authority = Authority::new();
    authority.issue("server", "127.0.0.1", 2200);
    let mut redis = TlsRedis::start(&authority, "server", "no", &[]);
    let plain = redis.plain.server().address.port();
    let sentinel = Sentinel::start(&authority, redis.port, Some("server"));
    let url = format!("rediss-sentinel://127.0.0.1:{}", sentinel.port());
    assert_shared(&format!("{url}/mymaster"), &trusted(&authority));
    assert_cause(
        &format!("{url}/another"),
        &trusted(&authority),
        "don't know a master of this name",
    );
    let sentinel = Sentinel::start(&authority, plain, None);
    let url = format!("redis-sentinel://127.0.0.1:1,127.0.0.1:{}/mymaster", sentinel.port());
    assert_shared(&url, &Tls::new());
}

#[test]
fn causes_of_failed_handshakes_are_named() {
    let authority = Authority::new();
    authority.issue("server", "127.0.0.1", 2200);
    authority.issue("expired", "127.0.0.1", 2021);
    authority.issue("foreign", "another.example", 2200);
    let redis = TlsRedis::start(&authority, "server", "no", &[]);
    let url = format!("rediss://{}", redis.address());
    assert_cause(
        &url,
        &Tls::new(),
        "TLS: the server's certificate is issued by an unknown authority; ",
    );
    for (file, cause) in [
        ("expired", "TLS: the server's certificate has expired; "),
        ("foreign", "TLS: the server's certificate is for another host name; "),
    ] {
        let redis = TlsRedis::start(&authority, file, "no", &[]);
        assert_cause(&format!("rediss://{}", redis.address()), &trusted(&authority), cause);
    }
    let plain = redis.plain.url().replace("redis://", "rediss://");
    assert_cause(&plain, &trusted(&authority), "TLS: the server doesn't answer the handshake; ");
    assert_cause(
        &url.replace("rediss", "redis"),
        &Tls::new(),
        "the server closed the connection; ",
    );
}

#[test]
fn unix_socket_is_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("redis.sock");
    let url = format!("unix://{}", socket.display());
    let bus = RedisBus::connect(&url).unwrap();
    assert_cause(&url, &Tls::new(), "the socket file doesn't exist; ");
    let _redis = Redis::with(&["--unixsocket", &socket.to_string_lossy()]);
    assert_shared(&url, &Tls::new());
    until("the bus is connected", || bus.status().connected);
}

#[test]
fn unusable_certificate_file_is_an_error_that_names_it() {
    let authority = Authority::new();
    authority.issue("one", "one", 2200);
    authority.issue("two", "two", 2200);
    let (missing, empty) = (authority.path("missing.pem"), authority.path("empty.pem"));
    std::fs::write(&empty, "").unwrap();
    for (tls, file, reason) in [
        (Tls::new().with_ca(&missing), "missing.pem", "cannot be read"),
        (Tls::new().with_ca(&empty), "empty.pem", "no PEM-encoded certificate"),
        (
            Tls::new().with_client(authority.path("one.pem"), &empty),
            "empty.pem",
            "no PEM-encoded private",
        ),
        (
            Tls::new().with_client(authority.path("one.pem"), authority.path("two-key.pem")),
            "two-key.pem",
            "does not fit",
        ),
    ] {
        let error =
            closed("rediss://127.0.0.1:1").tls(tls.clone()).connect().unwrap_err().to_string();
        assert!(error.contains(file) && error.contains(reason), "{error}");
        let bus = RedisBus::connect_with_tls("rediss://127.0.0.1:1", tls.clone()).unwrap_err();
        assert!(bus.to_string().contains(reason), "{bus}");
        let bus = NatsBus::connect_with_tls("tls://127.0.0.1:1", &tls).unwrap_err();
        assert!(bus.to_string().contains(reason), "{bus}");
    }
}

#[test]
fn renewed_certificate_applies_to_next_connection() {
    let authority = Authority::new();
    authority.issue("server", "127.0.0.1", 2200);
    authority.issue("client", "client", 2021);
    let redis = TlsRedis::start(&authority, "server", "yes", &[]);
    let url = format!("rediss://{}", redis.address());
    let shared = closed(&url).tls(client(&authority)).connect().unwrap();
    until("the expired certificate is rejected", || shared.outage_cause().is_some());
    authority.issue("client", "client", 2200);
    until("the renewed certificate is accepted", || shared.status().connected);
}

/// Returns the certificates of a client that trusts this authority.
fn trusted(authority: &Authority) -> Tls {
    Tls::new().with_ca(authority.path("ca.pem"))
}

/// Returns the certificates of a client that also presents the certificate `client.pem`.
fn client(authority: &Authority) -> Tls {
    trusted(authority).with_client(authority.path("client.pem"), authority.path("client-key.pem"))
}
