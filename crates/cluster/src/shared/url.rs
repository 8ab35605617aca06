use std::fmt;

use redis::{ConnectionInfo, IntoConnectionInfo};

use super::error::SharedError;

/// The address of the store. `Debug` prints only the kind, since the address contains a password.
#[derive(Clone)]
pub(super) enum Server {
    Single(ConnectionInfo),
    Cluster(Vec<ConnectionInfo>),
    /// `login` has the user, the password and the kind of connection of the master.
    Sentinel {
        sentinels: Vec<ConnectionInfo>,
        master: String,
        login: Box<ConnectionInfo>,
    },
}

impl Server {
    /// Parses a URL: `redis://`, `unix://`, `redis-cluster://[user:password@]h:p,h:p` or
    /// `redis-sentinel://[user:password@]h:p,h:p/MASTER`, whose credentials are those of the
    /// master. `rediss` in place of `redis` means TLS, to Sentinels too; `valkey` and `valkeys` mean the
    /// same as `redis` and `rediss`.
    pub(super) fn parse(url: &str) -> Result<Self, SharedError> {
        let (scheme, rest) = url.split_once("://").ok_or(SharedError::Url(NO_SCHEME))?;
        let (protocol, kind) = scheme.split_once('-').unwrap_or((scheme, ""));
        match (protocol, kind) {
            ("unix" | "redis+unix" | "valkey+unix", "") => parse_host(url).map(Self::Single),
            ("redis" | "rediss" | "valkey" | "valkeys", "") => parse_host(url).map(Self::Single),
            ("redis" | "rediss" | "valkey" | "valkeys", "cluster") => {
                parse_hosts(protocol, rest).map(Self::Cluster)
            }
            ("redis" | "rediss" | "valkey" | "valkeys", "sentinel") => {
                Self::parse_sentinel(protocol, rest)
            }
            _ => Err(SharedError::Url(UNKNOWN_SCHEME)),
        }
    }

    /// Returns the same store with a single host to connect through, so that an unresponsive host
    /// does not use up the timeout for all hosts.
    pub(super) fn via_host(&self, host: usize) -> Self {
        let only = |hosts: &[ConnectionInfo]| {
            let host = hosts.get(host % hosts.len().max(1));
            host.cloned().into_iter().collect()
        };
        match self {
            Self::Single(info) => Self::Single(info.clone()),
            Self::Cluster(nodes) => Self::Cluster(only(nodes)),
            Self::Sentinel { sentinels, master, login } => Self::Sentinel {
                sentinels: only(sentinels),
                master: master.clone(),
                login: login.clone(),
            },
        }
    }

    pub(super) fn hosts(&self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::Cluster(hosts) | Self::Sentinel { sentinels: hosts, .. } => hosts.len(),
        }
    }

    /// Returns the address of a host, without credentials.
    pub(super) fn address(&self, host: usize) -> String {
        match self {
            Self::Single(info) => info.addr().to_string(),
            Self::Cluster(hosts) | Self::Sentinel { sentinels: hosts, .. } => {
                let host = hosts.get(host % hosts.len().max(1));
                host.map(|host| host.addr().to_string()).unwrap_or_default()
            }
        }
    }

    /// Returns the maximum number of connections that are opened in sequence before the first call.
    pub(super) fn hops(&self) -> u32 {
        match self {
            Self::Single(_) => 1,
            Self::Sentinel { .. } => 2,
            // The first node, and nodes that it names.
            Self::Cluster(_) => 4,
        }
    }

    fn parse_sentinel(protocol: &str, rest: &str) -> Result<Self, SharedError> {
        let (hosts, master) = rest.rsplit_once('/').ok_or(SharedError::Url(NO_MASTER))?;
        let (user, hosts) =
            hosts.rsplit_once('@').map_or(("", hosts), |(user, hosts)| (user, hosts));
        let sentinels = parse_hosts(protocol, hosts)?;
        if master.is_empty() {
            return Err(SharedError::Url(NO_MASTER));
        }
        let login =
            parse_host(&format!("{protocol}://{user}@{}", hosts.split(',').next().unwrap_or("")))?;
        Ok(Self::Sentinel { sentinels, master: master.to_owned(), login: Box::new(login) })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single(_) => "Single",
            Self::Cluster(_) => "Cluster",
            Self::Sentinel { .. } => "Sentinel",
        })
    }
}

fn parse_hosts(scheme: &str, rest: &str) -> Result<Vec<ConnectionInfo>, SharedError> {
    let (user, hosts) = match rest.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), rest),
    };
    let hosts = hosts.trim_end_matches('/').split(',');
    hosts.map(|host| parse_host(&format!("{scheme}://{user}{}", host.trim()))).collect()
}

fn parse_host(url: &str) -> Result<ConnectionInfo, SharedError> {
    // The parser's own message may quote the password.
    url.into_connection_info().map_err(|_| SharedError::Url(INVALID))
}

const NO_SCHEME: &str = "no scheme; expected one such as redis://";
const UNKNOWN_SCHEME: &str = "unknown scheme; expected unix, redis, redis-cluster or redis-sentinel, with rediss, \
                              valkey or valkeys in place of redis";
const NO_MASTER: &str = "no master name; append it: redis-sentinel://HOST:PORT,HOST:PORT/MASTER";
const INVALID: &str = "invalid; expected SCHEME://[USER:PASSWORD@]HOST[:PORT]";
