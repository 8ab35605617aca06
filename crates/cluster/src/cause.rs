use std::borrow::Cow;
use std::fmt;

#[cfg(feature = "redis")]
use redis::{ErrorKind, RedisError};

/// The cause for which a server is unavailable, and what to do about it. Contains neither URLs nor
/// passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    problem: Cow<'static, str>,
    remedy: &'static str,
}

impl Cause {
    /// Returns the cause of an error while connecting.
    #[cfg(feature = "redis")]
    pub(super) fn of(error: &RedisError) -> Self {
        match (error.kind(), error.code()) {
            _ if error.is_timeout() => Self::of_text("timed out"),
            (ErrorKind::Server(_) | ErrorKind::Extension, Some(code)) if is_known(code) => {
                Self::of_code(code)
            }
            (ErrorKind::InvalidClientConfig, _) => Self {
                problem: error.detail().unwrap_or_else(|| error.category()).to_owned().into(),
                remedy: "correct the configuration",
            },
            (ErrorKind::AuthenticationFailed, _) => Self::of_code("WRONGPASS"),
            (ErrorKind::MasterNameNotFoundBySentinel, _) => Self::of_text(NO_MASTER),
            _ => Self::of_text(&error.to_string()),
        }
    }

    /// Returns the cause for the code of an error response, such as `NOAUTH`.
    #[cfg(feature = "redis")]
    pub(super) fn of_code(code: &str) -> Self {
        match CODES.iter().find(|(known, ..)| *known == code) {
            Some(&(_, problem, remedy)) => Self { problem: problem.into(), remedy },
            None => Self {
                problem: format!("the server answers with the error {code}").into(),
                remedy: "see its documentation and its log",
            },
        }
    }

    /// Returns the cause for the message of an error.
    pub(super) fn of_text(text: &str) -> Self {
        let known = TEXTS.iter().find(|(parts, ..)| parts.iter().any(|part| text.contains(part)));
        match known {
            Some(&(_, problem, remedy)) => Self { problem: problem.into(), remedy },
            None => {
                Self { problem: text.to_owned().into(), remedy: "check the server and its log" }
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

#[cfg(feature = "redis")]
fn is_known(code: &str) -> bool {
    CODES.iter().any(|(known, ..)| *known == code)
}

/// The text of the cause that Sentinels don't know the master.
#[cfg(feature = "redis")]
pub(super) const NO_MASTER: &str = NO_MASTER_TEXT;

/// Parts of error messages of the operating system, of rustls and of the clients, the problem, and the
/// remedy.
const TEXTS: [(&[&str], &str, &str); 20] = [
    (
        &["failed to lookup address", "DNS error", "resolves to no address", "No address found"],
        "the host name can't be resolved",
        "correct the host in the URL, or check the DNS server",
    ),
    (
        &["onnection refused"],
        "connection refused: no server listens at this address",
        "start the server, or correct the host and the port",
    ),
    (&["No such file"], "the socket file doesn't exist", "start the server, or correct the path"),
    (
        &["Permission denied"],
        "this process may not use the socket file",
        "check the permissions of the file and its directory",
    ),
    (
        &["nreachable", "No route to host"],
        "the host is unreachable",
        "check the network and the firewall",
    ),
    (
        &["UnknownIssuer", "CaUsedAsEndEntity"],
        "TLS: the server's certificate is issued by an unknown authority",
        "set `tls.ca` to the certificate of the authority, or add it to the system's",
    ),
    (
        &["certificate expired", "Expired"],
        "TLS: the server's certificate has expired",
        "renew it, or check the clock of this machine",
    ),
    (
        &["not valid yet", "NotValidYet"],
        "TLS: the server's certificate is not valid yet",
        "check the clock of this machine",
    ),
    (
        &["not valid for name", "NotValidForName"],
        "TLS: the server's certificate is for another host name",
        "use a name in the URL that the certificate contains",
    ),
    (
        &["CertificateRequired", "HandshakeFailure"],
        "TLS: the server requires a client certificate",
        "set `tls.cert` and `tls.key`",
    ),
    (
        &["UnknownCA", "BadCertificate", "CertificateUnknown", "AccessDenied", "DecryptError"],
        "TLS: the server rejects the client certificate",
        "use a certificate in `tls.cert` that the server's authority has issued",
    ),
    (
        &["corrupt message", "InvalidContentType", "InvalidMessage"],
        "TLS: the server doesn't use TLS on this port",
        "use its TLS port, or a URL without TLS, such as redis:// or nats://",
    ),
    (
        &["TLS error"],
        "TLS: no secure connection can be established",
        "check the server's certificate, and `tls.ca`, `tls.cert` and `tls.key`",
    ),
    (
        &["refused to switch database"],
        "the server has no database with this number",
        "correct the number at the end of the URL; a Redis Cluster only has database 0",
    ),
    (
        &["max number of clients"],
        "the server accepts no more connections",
        "raise its `maxclients`",
    ),
    (
        &["uthorization violation", "uthorization Violation"],
        "the server rejects the user, password or token",
        "correct the credentials in the URL",
    ),
    (
        &[NO_MASTER_TEXT],
        "the Sentinels don't know a master of this name",
        "correct the name at the end of the URL",
    ),
    (
        &["handshake timed out"],
        "TLS: the server doesn't answer the handshake",
        "use its TLS port, or a URL without TLS; otherwise check its load",
    ),
    (
        &["timed out", "deadline has elapsed"],
        "the server doesn't respond in time",
        "check its load and the network, or raise the timeout",
    ),
    (
        &["onnection reset", "roken pipe", "end of file", "terminated", "eof", "connection lost"],
        "the server closed the connection",
        "check its log; if its port requires TLS, use a URL with TLS, such as rediss://",
    ),
];

/// The error text of a TLS handshake that the server doesn't answer: a server without TLS waits for the end
/// of a line.
#[cfg(feature = "redis")]
pub(super) const HANDSHAKE_TIMED_OUT: &str = "TLS handshake timed out";

const NO_MASTER_TEXT: &str = "unknown master";

/// Codes of error responses, the problem, and the remedy.
#[cfg(feature = "redis")]
const CODES: [(&str, &str, &str); 12] = [
    (
        "NOAUTH",
        "the server requires a password",
        "add the user and password to the URL: redis://USER:PASSWORD@HOST",
    ),
    (
        "WRONGPASS",
        "the server rejects the user or password",
        "correct them in the URL; percent-encode special characters",
    ),
    (
        "NOPERM",
        "the server's access control list forbids a command or a key",
        "allow the user the commands and keys listed in docs/cluster.md",
    ),
    (
        "READONLY",
        "the server is a read-only replica",
        "use the address of the master, or of Sentinels",
    ),
    ("OOM", "the server is out of memory", "raise its `maxmemory`, or remove other keys"),
    ("LOADING", "the server is loading its data", "wait until it has started"),
    (
        "MISCONF",
        "the server refuses writes because it can't save its data",
        "check its disk and its log",
    ),
    (
        "NOREPLICAS",
        "the server refuses writes because too few replicas are connected",
        "start the replicas, or lower `min-replicas-to-write`",
    ),
    ("MASTERDOWN", "the replica has lost its master", "start the master"),
    (
        "CLUSTERDOWN",
        "the cluster is down, or not all slots are assigned",
        "check it with `CLUSTER INFO`",
    ),
    (
        "DENIED",
        "the server is in protected mode and refuses connections of other hosts",
        "set a password, or `bind` and `protected-mode no`",
    ),
    ("BUSY", "the server is busy with a script", "wait, or end it with `SCRIPT KILL`"),
];
